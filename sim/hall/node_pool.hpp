// The nodes of a cluster: who holds them, which are out of service, and which a job gets.
#pragma once

#include <map>
#include <vector>

#include "hall/hall_plan.hpp"

namespace tw::hall {

class NodePool {
 public:
  NodePool(const Cluster& cluster, Placing placing, std::vector<Window> maintenance);

  // Nodes for a job that expects to be done at `until_s`, by the hall's rule; fewer than asked: it has to wait. Spares
  // are the last nodes of the cluster. `down_before`: the job was stopped by a failure.
  std::vector<int> choose(int count, double now_s, double until_s, bool spares) const;
  // Most that could be chosen now, whatever the units.
  int free(double now_s, double until_s, bool spares) const;

  void take(const std::vector<int>& nodes, int job);
  void release(const std::vector<int>& nodes);
  int holder(int node) const { return holder_[static_cast<size_t>(node)]; }  // -1: nobody
  void set_failed(int node, bool failed, double back_s = kNever);
  bool failed(int node) const { return failed_[static_cast<size_t>(node)]; }
  bool in_maintenance(int node, double now_s) const;
  int held() const { return held_; }
  int off(double then_s) const;  // free nodes that draw nothing: failed (until they are back) or in maintenance
  // For what is to come: puts nodes that are back by then into service; when the next one after a moment is.
  void repair(double then_s);
  double next_back_s(double after_s) const;

 private:
  bool usable(int node, double now_s, double until_s) const;
  bool serviced(double now_s, double until_s) const;  // a window of maintenance is in that time
  int& busy(int node) { return busy_[node < cluster_->nodes - cluster_->spares ? 0 : 1]; }
  const Cluster* cluster_;
  Placing placing_;
  std::vector<Window> maintenance_;
  std::vector<int> holder_, unit_;
  std::vector<char> failed_;
  std::map<int, double> back_s_;  // of failed nodes
  int busy_[2] = {0, 0};          // held or failed, of the nodes for everybody and of the spares
  int held_ = 0, units_ = 1;
};

}  // namespace tw::hall
