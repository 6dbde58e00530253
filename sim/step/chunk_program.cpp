#include "step/chunk_program.hpp"

#include <algorithm>

#include "step/host_copies.hpp"
#include "workload/memory.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

// A collective's kernel, and the events by which its stream and that of the products wait for each other.
constexpr double kTracedEvents = 4;

SharedSum share(const SharedSum& s, double f) {
  return {s.dense * f, s.experts * f};
}

}  // namespace

bool ChunkShape::operator==(const ChunkShape& o) const {
  return kinds == o.kinds && embedding == o.embedding && head == o.head && gathered.dense == o.gathered.dense &&
         gathered.experts == o.gathered.experts && gradients.dense == o.gradients.dense &&
         gradients.experts == o.gradients.experts;
}

ChunkProgram::ChunkProgram(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown, Pass pass,
                           const SharedExchanges& shared)
    : in_(in), exchange_(exchange), pass_(pass), shared_(shared) {
  // Nobody wants an operand transposed where no gradient of a weight follows.
  Software software = *in.software;
  if (pass == Pass::evaluation) software.kernels.cast_transpose = 0;
  const LayerOperations head = head_operations(*in.network, *in.training, *in.plan, software);
  for (const LayerKind& kind : layers_as_trained(*in.network, *in.training, layers_of_chunks(*in.network, *in.plan))) {
    if (of_kind_.count(kind) > 0) continue;
    const LayerOperations layer = layer_operations(*in.network, kind, *in.training, *in.plan, software);
    const auto list = [&](const std::vector<Operation>& operations, double slow) {
      return in_tp_pieces(operations, timed(operations, slow), slow);
    };
    of_kind_[kind].forward = list(layer.forward, slowdown.forward);
    if (pass != Pass::evaluation) of_kind_[kind].backward = list(layer.backward, slowdown.backward);
  }
  if (pass != Pass::evaluation) scales_ = timed(scale_operations(), 1);
  time_embedding(software, slowdown);
  head_ = timed(head.forward, slowdown.forward);
  if (pass == Pass::evaluation) return;
  head_back_ = timed(head.backward, slowdown.backward);
}

const ChunkProgram::List& ChunkProgram::layer(const ChunkShape& shape, int l, bool backward) const {
  const Lists& lists = of_kind_.at(shape.kinds[static_cast<size_t>(backward ? shape.layers() - 1 - l : l)]);
  return backward ? lists.backward : lists.forward;
}

ChunkProgram::List ChunkProgram::timed(const std::vector<Operation>& operations, double slowdown) {
  const Software& software = *in_.software;
  const Hosts& hosts = in_.cluster->hosts;
  const Accelerator& accelerator = in_.cluster->node.accelerator;
  const bool graphs = pass_ != Pass::evaluation ? software.host.graphs_training : software.host.graphs_evaluation;
  // A graph replays a whole layer, or a part of it, with one launch.
  const auto captured = [&](GraphPart part) {
    const auto& parts = software.host.graph_parts;
    return graphs || (pass_ != Pass::evaluation && std::find(parts.begin(), parts.end(), part) != parts.end());
  };
  // Where two micro-batches are joined the host asks for the counts of tokens after it issued the other one's backward
  // products, which the device has to do meanwhile (Megatron-Core, model_chunk_schedule_plan.py, token_dispatcher.py).
  const bool joined = software.streams.dispatch_beside && !graphs;
  List list;
  for (const Operation& o : operations) {
    TimedOperation t;
    t.task.name = o.name;
    t.task.activity = o.activity;
    t.exchange = o.exchange;
    t.weight = o.weight_gradient;
    t.launches = o.launches;
    t.task.stops_host = o.stops_host && !graphs && !software.streams.dispatch_beside;
    stops_host_ = stops_host_ || t.task.stops_host;
    const double host = (o.backward ? software.host.backward : 1) / hosts.launch_speed;
    if (o.kind == OperationKind::exchange) {
      const double bytes = o.bytes * (o.exchange == Exchange::ep_all_to_all ? sent_share() : 1);
      t.task.stream = stream_of(o.exchange);
      t.task.length_s = exchange_s(o.exchange, bytes);
      t.task.bytes = bytes;
      if (shared_.count(o.exchange) > 0) t.task.load = o.exchange;
      t.task.beside_s = beside_s(o.exchange, bytes, t.task.length_s);
      const bool form = o.exchange == Exchange::tp_all_reduce && software.host.per_all_reduce.value() > 0;
      t.task.host_s = host * (form ? software.host.per_all_reduce : software.host.per_collective).value();
      // An exchange of tokens ends one part of a layer and is one: attention, dispatch, experts, combine.
      if (joined && o.exchange == Exchange::ep_all_to_all)
        t.task.host_s += 2 * software.host.per_part.value() / hosts.launch_speed;
      t.task.length_s += kTracedEvents * software.host.traced_gap.value();
    } else {
      t.task.length_s = kernel_time_s(o, accelerator, software, slowdown) / hosts.device_speed +
                        o.launches * software.host.traced_gap.value();
      t.task.flops = o.flops;
      t.task.host_s = host * o.launches * software.host.per_operation.value();
      if (o.bare && software.host.per_kernel.value() > 0)
        t.task.host_s = o.launches * software.host.per_kernel.value() / hosts.launch_speed;
      if (o.weight_gradient) t.parameters = o.m * o.n * o.groups;
      if (o.kind == OperationKind::attention && in_.plan->cp > 1) {
        t.attention = true;
        Operation piece = o;
        piece.attention.key_tokens /= in_.plan->cp;
        t.part_s = kernel_time_s(piece, accelerator, software, slowdown) / hosts.device_speed;
      }
    }
    list.push_back(t);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (!captured(operations[i].part)) continue;
    const bool first = i == 0 || (!graphs && operations[i - 1].part != operations[i].part);
    list[i].task.host_s = first ? software.host.per_operation.value() / hosts.launch_speed : 0;
    list[i].launches = first ? 1 : 0;
  }
  return list;
}

Played ChunkProgram::on_device(const TaskList& b) const {
  return play(b.tasks, in_.software->streams.kernel_beside_exchange, false);
}

TaskCost ChunkProgram::played(const TaskList& b, const Played& device) const {
  TaskCost c;
  c.busy = device.busy;
  c.tp_s = device.waited_s[static_cast<size_t>(Stream::tp)];
  c.cp_s = device.waited_s[static_cast<size_t>(Stream::cp)];
  c.ep_s = device.waited_s[static_cast<size_t>(Stream::ep)];
  c.dp_s = device.waited_s[static_cast<size_t>(Stream::dp)] + device.waited_s[static_cast<size_t>(Stream::dp_outer)];
  c.gap_s = device.host_wait_s + device.waited_s[static_cast<size_t>(Stream::to_host)] +
            device.waited_s[static_cast<size_t>(Stream::from_host)];
  if (pass_ == Pass::estimate && !stops_host_) {
    for (const Task& task : b.tasks) c.host_s += task.host_s;
  } else {
    const Played issued = play(b.tasks, in_.software->streams.kernel_beside_exchange, true);
    c.host_s = issued.host_end_s;
    if (device.host_end_s >= 0) c.to_host_s = device.host_end_s;
    c.from_host_s = issued.end_s;
    c.host_exchange_s = issued.host_exchange_s;
  }
  c.flops = b.flops;
  c.launches = b.launches;
  if (in_.software->host.traced_gap.value() > 0) {
    // A layer that was traced alone takes what it took with its host, wherever it runs: no host is ahead of the device
    // where a stage waits, and none of what waits for the head.
    c.gap_s += std::max(0.0, c.from_host() - c.device_s());
    c.host_s = c.from_host_s = 0;
  }
  if (!shared_.empty()) c.shared = visit_exchanges(b.tasks, device, shared_);
  if (kept_ != nullptr) kept_->push_back({b.tasks, device, 1});
  return c;
}

// Layers without exchanges of data-parallel ranks: one is played and repeated, unless copies reach over them.
TaskCost ChunkProgram::layers(const ChunkShape& shape, bool backward, bool inputs, bool weights) const {
  if (!host_copies_s(shape).empty()) {
    ChunkShape alone = shape;
    alone.gathered = alone.gradients = {};
    return sharded(alone, backward, inputs, weights);
  }
  const auto part = [&](const List& operations) {
    if (operations.empty()) return TaskCost{};
    TaskList b = list();
    b.add(operations, inputs, weights);
    b.copy(0, -1);
    return played(b);
  };
  TaskCost c;
  if (shape.embedding && !backward) c += part(embed_);
  if (shape.head && backward) c += part(head_back_);
  for (int l = 0, alike = 1; l < shape.layers(); l += alike) {
    const List& operations = layer(shape, l, backward);
    for (alike = 1; l + alike < shape.layers() && &layer(shape, l + alike, backward) == &operations;) ++alike;
    c += part(operations).repeated(alike);
    if (kept_ != nullptr && !operations.empty()) kept_->back().repeats = alike;
  }
  if (shape.head && !backward) c += part(head_);
  if (shape.embedding && backward) c += part(embed_back_);
  if (inputs) c += part(scales_);
  return c;
}

// ZeRO-3: the weights of the next layer are gathered while one computes, its gradients scattered while the one before
// it does; a gather's buffer is free again when the layer after next begins (PyTorch FSDP2). In hybrid groups the
// shards' gradients are then reduced over the outer group.
TaskCost ChunkProgram::sharded(const ChunkShape& shape, bool backward, bool inputs, bool weights) const {
  const Software& s = *in_.software;
  const double per_layer = 1.0 / std::max(1, shape.layers()), speed = in_.cluster->hosts.launch_speed;
  const SharedSum weight_bytes = share(shape.gathered, per_layer), gradient_bytes = share(shape.gradients, per_layer);
  const TravelTime gather_t = travel(Exchange::weight_gather, Exchange::expert_gather, weight_bytes);
  const TravelTime reduce_t = travel(Exchange::gradient_reduce, Exchange::expert_reduce, gradient_bytes);
  const SharedSum shard{in_.plan->shard_group > 0 ? gradient_bytes.total() / in_.plan->shard_group : 0, 0};
  const TravelTime outer_t = travel(Exchange::outer_reduce, Exchange::none, shard);
  const double out_s = copy_s(s.kernels.gather_copy_passes * weight_bytes.total());
  const double in_s = copy_s(s.kernels.gather_copy_passes * gradient_bytes.total());
  const bool gathers = gather_t.alone_s > 0 && (!backward || in_.plan->reshard),
             reduces = backward && weights && reduce_t.alone_s > 0;
  const double hook_s = (backward ? s.host.shard_backward : s.host.shard_forward).value() / speed;
  TaskList b = list();
  const auto n = static_cast<size_t>(shape.layers());
  std::vector<int> gathered(n + 1, -1), opened(n + 1, -1);
  int reduced = -1;
  if (n == 0 && gathers) b.copy(out_s, b.beside(Stream::dp, gather_t, -1, hook_s));
  if (shape.embedding && !backward) b.add(embed_, inputs, weights);
  if (shape.head && backward) b.add(head_back_, inputs, weights);
  const auto gather = [&](size_t l) {
    if (gathers && l < n) gathered[l] = b.beside(Stream::dp, gather_t, l > 1 ? opened[l - 2] : -1, hook_s);
  };
  HostCopies copies(b, inputs ? host_copies_s(shape) : std::vector<double>(), shape.layers(), backward);
  gather(0);
  for (size_t l = 0; l < n; ++l) {
    gather(l + 1);
    copies.before(static_cast<int>(l));
    if (gathers) opened[l] = b.copy(out_s, gathered[l]);
    b.add(layer(shape, static_cast<int>(l), backward), inputs, weights);
    copies.after(static_cast<int>(l));
    if (reduces) {
      // The buffer of the last scatter is taken again: the copy into it waits.
      const int ready = b.copy(in_s, reduced);
      reduced = b.beside(Stream::dp, reduce_t, ready, gathers ? 0 : hook_s);
      if (outer_t.alone_s > 0) reduced = b.beside(Stream::dp_outer, outer_t, reduced);
    }
  }
  if (shape.head && !backward) b.add(head_, inputs, weights);
  if (shape.embedding && backward) b.add(embed_back_, inputs, weights);
  b.add(scales_, inputs, inputs);
  b.copy(0, reduced);
  return played(b);
}

// Updated weights arrive layer by layer, on the way of the first forward.
TaskCost ChunkProgram::first_forward(const ChunkShape& shape) const {
  const SharedSum bytes = share(shape.gathered, 1.0 / std::max(1, shape.layers()));
  const TravelTime gather_t = travel(Exchange::weight_gather, Exchange::expert_gather, bytes);
  TaskList b = list();
  std::vector<int> gathered;
  for (int l = 0; l < std::max(1, shape.layers()); ++l) gathered.push_back(b.beside(Stream::dp, gather_t, -1));
  if (shape.layers() == 0) b.copy(0, gathered.front());
  if (shape.embedding) b.add(embed_);
  HostCopies copies(b, host_copies_s(shape), shape.layers(), false);
  for (int l = 0; l < shape.layers(); ++l) {
    b.copy(0, gathered[static_cast<size_t>(l)]);
    copies.before(l);
    b.add(layer(shape, l, false));
    copies.after(l);
  }
  if (shape.head) b.add(head_);
  b.add(scales_);
  return played(b);
}

// The last backward of a step: gradients leave in buckets as soon as they are there.
TaskCost ChunkProgram::last(const ChunkShape& shape, bool inputs, std::vector<Bucket>& buckets) const {
  const Software& s = *in_.software;
  TaskList b = list();
  double parameters = 0;  // of all layers, and of towers
  const auto count = [&](const List& operations) {
    for (const TimedOperation& t : operations) parameters += t.parameters;
  };
  for (int l = 0; l < shape.layers(); ++l) count(layer(shape, l, true));
  if (shape.embedding) count(embed_back_);
  // Parameters of embedding and head are those that the layers do not have.
  const int ends = (shape.embedding ? 1 : 0) + (shape.head ? 1 : 0);
  double of_layers = shape.gradients.total();
  if (ends > 0 && parameters > 0) of_layers = std::min(of_layers, parameters * s.memory.gradient_bytes_per_parameter);
  const double rest = shape.gradients.total() - of_layers;
  const double experts = shape.gradients.experts / std::max(1.0, shape.gradients.total());
  std::vector<int> sent;
  double waiting = 0;
  const auto send = [&] {
    if (waiting <= 0) return;
    const SharedSum bytes{waiting * (1 - experts), waiting * experts};
    const int ready = b.copy(copy_s(0.5 * s.kernels.gradient_copy_passes * waiting), -1);
    const TravelTime t = travel(Exchange::gradient_reduce, Exchange::expert_reduce, bytes);
    sent.push_back(b.beside(Stream::dp, t, ready, s.host.per_bucket.value() / in_.cluster->hosts.launch_speed));
    buckets.push_back({1, bytes, 1});
    waiting = 0;
  };
  const double full =
      s.streams.gradients_beside_backward
          ? std::max(s.streams.bucket.value(), s.streams.bucket_per_rank.value() * in_.plan->dp * in_.plan->cp)
          : shape.gradients.total();
  const auto grow = [&](double bytes) {
    waiting += bytes;
    if (waiting >= full) send();
  };
  if (shape.head) b.add(head_back_, inputs), grow(rest / std::max(1, ends));
  HostCopies copies(b, inputs ? host_copies_s(shape) : std::vector<double>(), shape.layers(), true);
  const auto run = [&](const List& operations) {
    for (const TimedOperation& t : operations) {
      b.add(t, inputs);
      if (t.parameters > 0) grow(of_layers * t.parameters / parameters);
    }
  };
  for (int l = 0; l < shape.layers(); ++l) {
    copies.before(l);
    run(layer(shape, l, true));
    if (parameters <= 0) grow(of_layers / shape.layers());
  }
  if (shape.embedding) run(embed_back_), grow(rest / std::max(1, ends));
  send();
  b.add(scales_, inputs, inputs);
  b.copy(0, -1);
  const Played device = on_device(b);
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto k = static_cast<size_t>(sent[i]);
    const auto ready = static_cast<size_t>(b.tasks[k].after);
    buckets[i].share = device.end_s > 0 ? std::min(1.0, device.done_s[ready] / device.end_s) : 1;
    if (b.tasks[k].length_s > 0) buckets[i].stretch = (device.done_s[k] - device.begin_s[k]) / b.tasks[k].length_s;
  }
  return played(b, device);
}

PassCost ChunkProgram::cost(const ChunkShape& shape, bool split) {
  PassCost c = whole_cost(shape, split);
  for (TaskCost* t : {&c.forward, &c.backward, &c.input, &c.weight, &c.first_forward, &c.last_backward, &c.last_weight})
    t->shared = in_pieces(t->shared);
  return c;
}

PassCost ChunkProgram::whole_cost(const ChunkShape& shape, bool split) const {
  PassCost c;
  const Plan& plan = *in_.plan;
  if (pass_ == Pass::evaluation) {
    c.forward = layers(shape, false, true, true);
    return c;
  }
  const bool zero3 = plan.sharding == Sharding::zero3;
  const bool each = zero3 && reshards(plan);
  const auto whole = [&](bool backward, bool inputs, bool weights) {
    return each ? sharded(shape, backward, inputs, weights) : layers(shape, backward, inputs, weights);
  };
  c.forward = whole(false, true, true);
  c.backward = whole(true, true, true);
  join(c.forward, c.backward);
  c.first_forward = c.forward, c.last_backward = c.backward;
  if (split) {
    c.input = whole(true, true, false);
    c.weight = c.last_weight = whole(true, false, true);
  }
  if (each) return c;
  c.updated = shape.gathered;
  if (shape.gathered.total() > 0 && pass_ != Pass::estimate)
    c.first_forward = zero3 ? sharded(shape, false, true, true) : first_forward(shape);
  if (shape.gradients.total() > 0 && exchange_) {
    c.last_backward = last(shape, true, c.buckets);
    if (split) c.last_weight = last(shape, false, c.weight_buckets);
  }
  return c;
}

std::vector<ChunkShape> chunk_shapes(const StepInputs& in) {
  const auto layers = layers_of_chunks(*in.network, *in.plan);
  const auto kinds = layers_as_trained(*in.network, *in.training, layers);
  auto next = kinds.begin();
  std::vector<ChunkShape> shapes(layers.size());
  for (size_t c = 0; c < layers.size(); ++c) {
    shapes[c].kinds.assign(next, next + layers[c]);
    next += layers[c];
  }
  shapes.front().embedding = true;
  shapes.back().head = true;
  return shapes;
}

std::vector<PassCost> chunk_costs(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown,
                                  Pass pass, const SharedExchanges& shared) {
  const Plan& plan = *in.plan;
  ChunkProgram program(in, exchange, slowdown, pass, shared);
  const auto groups = groups_of(in);
  const bool split = rule_of(plan.schedule, plan.vp).splits && pass != Pass::estimate;
  std::vector<PassCost> chunks;
  std::vector<ChunkShape> shapes = chunk_shapes(in);
  for (size_t c = 0; c < shapes.size(); ++c) {
    ChunkShape& shape = shapes[c];
    if (pass != Pass::evaluation) {
      shape.gradients = exchanged_gradients(in, groups, static_cast<int>(c));
      if (plan.sharding == Sharding::zero3) shape.gathered = gathered_bytes(groups, static_cast<int>(c));
      const double weight = 2 / in.software->memory.gradient_bytes_per_parameter;  // updated BF16 weights
      if ((plan.sharding == Sharding::zero1 || plan.sharding == Sharding::zero2) &&
          in.software->streams.gather_beside_forward)
        shape.gathered = share(shape.gradients, weight);
    }
    const auto known = static_cast<size_t>(std::find(shapes.begin(), shapes.end(), shape) - shapes.begin());
    chunks.push_back(known == c ? program.cost(shape, split) : chunks[known]);
  }
  return chunks;
}

}  // namespace tw
