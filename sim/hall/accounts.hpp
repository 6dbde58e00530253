// The hall's books: watts of a moment from the nodes to the feed, and joules, carbon and money of the hall and of each
// job. Rules of the shares, all by what flows at the moment:
//   network   the cluster's network rule; what it charges to nobody is the idle part's
//   loss      rectifiers, stages above them and battery, in proportion to DC watts of nodes
//   cooling   in proportion to what a job takes before cooling
//   idle      idle nodes and their shares of the rest, by node-seconds held over the whole time
// So jobs add up to the feed.
#pragma once

#include <functional>
#include <vector>

#include "core/sum.hpp"
#include "hall/hall_plan.hpp"
#include "hall/hall_result.hpp"

namespace tw::hall {

// DC watts of the nodes of one cluster.
struct Load {
  double jobs_w = 0, idle_w = 0;
  bool on = true;  // there is power
};
struct Flow {
  double jobs_w = 0, idle_w = 0, loss_w = 0, network_w = 0, cooling_w = 0;
  double load_w() const { return jobs_w + idle_w + loss_w + network_w + cooling_w; }
  double base_w = 0;        // what the site's PUE is stated on
  double above_base_w = 0;  // losses that it is to cover
};
// Loss of a cluster between its nodes and the feed.
double delivery_loss_w(const Cluster& cluster, double dc_w);
// What one more DC watt of its nodes takes at the feed.
double delivery_slope(const Cluster& cluster, double dc_w);
Flow flow_of(const HallPlan& plan, const std::vector<Load>& loads, double outside_c);

class Accounts {
 public:
  struct Member {  // a job on its nodes
    int job = 0, cluster = 0, nodes = 0;
    double node_w = 0, network_w = 0;
  };
  explicit Accounts(const HallPlan& plan);
  // Time passes. `taken_w`: by the battery at the feed, negative what it gives; `stored_w`: what its cells gain.
  void pass(double now_s, double dt_s, const std::vector<Load>& loads, const std::vector<Member>& members,
            double taken_w, double stored_w, double limit_w);
  // Shares out what nobody holds and fills in the energies of the jobs and of the hall.
  void close(HallOutcome& out) const;

 private:
  struct Book {
    Sum nodes, loss, network, cooling, stored, kg, money, water, node_s;
  };
  Joules joules(const Book& b, bool idle) const;
  void put(Book& book, double nodes_w, double loss_w, double network_w, double cooling_w, double part, double taken_w,
           double stored_w, double dt_s, double water_l);
  const HallPlan* plan_;
  std::vector<Book> jobs_;
  Book idle_;
  Sum nodes_, idle_nodes_, loss_, network_, cooling_, stored_, feed_, kg_, money_, water_, base_, it_, above_s_,
      above_j_, given_, taken_;
  double peak_w_ = 0, now_kg_per_j_ = 0, now_price_ = 0;
};

// Highest mean of a quarter of an hour in each 30 days, as demand charges go by. Of watts constant between changes.
std::vector<double> demand_by_month(const std::vector<Moment>& power, double end_s);

}  // namespace tw::hall
