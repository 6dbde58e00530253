// Time of the operations of one micro-batch on one rank: kernels and exchanges on their streams, and the host that
// issues them.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "hardware/activity.hpp"
#include "step/inputs.hpp"
#include "step/schedule.hpp"
#include "step/streams.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"

namespace tw {

// Seconds of one exchange alone.
using ExchangeTime = std::function<double(Exchange what, double bytes)>;

// Exchanges inside visits that may meet others on the links of the fabric, and the seconds that these links need for
// each byte when nobody else is there.
using SharedExchanges = std::map<Exchange, double>;

// One of them, or several in a row.
struct VisitExchange {
  Exchange what = Exchange::none;
  double bytes = 0;
  double begin_s = 0;   // from the beginning of the visit, alone
  double alone_s = 0;   // on its links
  double waited_s = 0;  // of that the kernels wait for it
  double slack_s = 0;   // it may be so late before kernels wait longer, in full
};

// Device and host time of one visit, or of a part of one, all in seconds. As a map in (max, +) algebra: begun when the
// host is free at h and the device (and the input) at d, it ends at max(h + from_host(), d + device_s()), and the host
// is free again at max(h + host_s, d + to_host_s).
constexpr double kNoWay = -1e6;  // seconds: in a maximum with any other
struct TaskCost {
  ActivityTimes busy;                   // kernels, and what exchanges beside them lengthen them by
  double tp_s = 0, cp_s = 0, ep_s = 0;  // the kernels wait for exchanges
  double dp_s = 0;                      // and for weights or the exchange of gradients
  double gap_s = 0;                     // the device waits inside its own work (input, launches), without noise
  double host_s = 0;                    // the host's time to issue it all
  double from_host_s = 0;               // end when the host begins at 0 and the device is free; 0: not known better
  double to_host_s = kNoWay;            // the host is stopped by the device
  double host_exchange_s = 0;           // exchanges run while the device waits for the host
  double flops = 0;                     // of its kernels
  double launches = 0;                  // that the host issues
  std::vector<VisitExchange> shared;    // in the order in which they begin
  double device_s() const { return busy.total() + tp_s + cp_s + ep_s + dp_s + gap_s; }
  double from_host() const;
  TaskCost& operator+=(const TaskCost& next);  // then `next`
  TaskCost repeated(int times) const;
};

// Gradients that leave during a visit.
struct Bucket {
  double share = 1;  // of the visit's time, when they are ready
  SharedSum bytes;
  double stretch = 1;  // their exchange takes longer beside kernels
};

// Visits of one chunk by one micro-batch.
struct PassCost {
  TaskCost forward, backward;           // backward: gradients of inputs and weights
  TaskCost input, weight;               // the two halves of it, apart
  TaskCost first_forward;               // of the step: weights updated on other ranks arrive
  TaskCost last_backward, last_weight;  // of the step: gradients leave
  std::vector<Bucket> buckets, weight_buckets;
  SharedSum updated;  // bytes of weights that arrive for the first forward
  const TaskCost& of(const Visit& v) const;
};

// Time of the clock-bound kernels over that at full clock, for each direction.
struct Slowdown {
  double forward = 1, backward = 1;
};

// An estimate is a training pass without its first forward, the halves of its backward, and the device's wait for its
// host (from_host_s).
enum class Pass { training, evaluation, estimate };

// Cost of each chunk for one micro-batch, embedding and head included in the first and last. `slowdown` lengthens the
// kernels that draw more than the board limit allows (gpu_power.hpp); 1 = full clock. `shared`: exchanges that the
// costs list one by one, so that the engine can play them.
std::vector<PassCost> chunk_costs(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown,
                                  Pass pass, const SharedExchanges& shared = {});

// Adam and gradient scaling after the last micro-batch, on the rank where it takes longest: bytes per trained parameter
// moved at the copy plateau; states that wait in the host's memory are updated there, or come and go (optimizer.cpp).
TaskCost optimizer_cost(const StepInputs& in);

// The groups of the step's network under its plan (not for profiled workloads).
std::vector<ParameterGroup> groups_of(const StepInputs& in);

// Gradient bytes of one model chunk that ranks exchange: among all data and context parallel ranks, and among the
// holders of the same experts.
SharedSum exchanged_gradients(const StepInputs& in, const std::vector<ParameterGroup>& groups, int chunk);

}  // namespace tw
