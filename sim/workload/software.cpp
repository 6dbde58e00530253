#include "workload/software.hpp"

#include "core/codec.hpp"
#include "hardware/accelerator.hpp"

namespace tw {

void Software::Host::describe(Description<Host>& d) {
  d.optional("host_per_operation", &Host::per_operation, "host time to issue one kernel");
  d.optional("host_per_kernel", &Host::per_kernel,
             "host time of each of the small kernels that one module issues in a row; 0: as host_per_operation");
  d.optional("host_per_collective", &Host::per_collective, "host time to issue one collective");
  d.optional("host_per_part", &Host::per_part,
             "host time of each part that a layer with experts is issued in where micro-batches are joined "
             "(dispatch_beside): attention, dispatch, experts, combine, either way, beyond that of its kernels");
  d.optional("host_per_all_reduce", &Host::per_all_reduce,
             "host time of a tensor-parallel all-reduce where the release gives it a form of its own; 0: as "
             "host_per_collective");
  d.optional("host_shard_forward", &Host::shard_forward,
             "host time of the hooks of a layer with sharded weights in forward: gather, copies, freeing");
  d.optional("host_shard_backward", &Host::shard_backward, "the same in backward, with the scatter");
  d.optional("host_per_bucket", &Host::per_bucket, "host time of the hooks of a bucket of gradients");
  d.optional("traced_gap", &Host::traced_gap,
             "idle time of the device after every kernel where a tracer records kernels one by one; four a collective, "
             "with its events on two streams");
  d.optional("host_backward", &Host::backward, "host time of issuing backward work over that of forward work",
             between(0, 10));
  d.optional("graphs_training", &Host::graphs_training, "training steps run in CUDA graphs");
  d.optional("graphs_evaluation", &Host::graphs_evaluation, "evaluations run in CUDA graphs");
  d.optional("graph_parts", &Host::graph_parts,
             "parts of a layer that run in CUDA graphs of their own in training steps; feed: MLP or experts");
}

void Software::Streams::describe(Description<Streams>& d) {
  d.optional(
      "dispatcher", &Streams::dispatcher,
      "how tokens come to their experts: a copy for every expert chosen, or one for every node (inside an NVLink "
      "domain: every rank) that holds some of them, as DeepEP and HybridEP do");
  d.optional("dispatch_stops_host", &Streams::dispatch_stops_host,
             "the host waits for the count of tokens that go to each expert before it issues what follows");
  d.optional("dispatch_beside", &Streams::dispatch_beside,
             "all-to-alls of experts run beside kernels of another micro-batch, whose other direction is joined");
  d.optional("scatter_beside_weights", &Streams::scatter_beside_weights,
             "the tensor-parallel scatter of an input's gradient runs beside the products of the weights' gradients");
  d.optional("gradients_beside_backward", &Streams::gradients_beside_backward,
             "buckets of gradients leave while backward runs; else after it");
  d.optional("gather_beside_forward", &Streams::gather_beside_forward,
             "weights of a sharded optimizer arrive beside the next forward; else after the update");
  d.optional(
      "tensors_have_owners", &Streams::tensors_have_owners,
      "a sharded optimizer gives whole tensors to ranks: gradients are all-reduced and weights broadcast by their "
      "owners, a message for each owner");
  d.optional("bucket", &Streams::bucket,
             "size of the buckets that gradients travel in, when backward runs beside them");
  d.optional("bucket_per_rank", &Streams::bucket_per_rank,
             "size of a bucket for each data-parallel rank, where that makes more than bucket");
  d.optional("cp_round", &Streams::cp_round,
             "shortest round of ring attention (context parallelism): hand-shake and skew of the neighbours");
  d.optional("paired_hand_over", &Streams::paired_hand_over,
             "sends and receives of a pipeline stage are one queue in the schedule's order, each waiting for its "
             "partner; else they pass one another");
  d.optional("fp8_gather", &Streams::fp8_gather, "tensor-parallel gathers before FP8 layers carry FP8");
  d.optional("kernel_beside_exchange", &Streams::kernel_beside_exchange,
             "time of kernels while an exchange runs beside them over their time alone", between(1, 10));
  d.optional("exchange_beside_kernel", &Streams::exchange_beside_kernel,
             "time of an exchange inside an NVLink domain while kernels run beside it over its time alone",
             between(1, 10));
  d.optional("sharp", &Streams::sharp, "collectives between nodes may be reduced in the switches (SHARP)");
  d.optional("nvls", &Streams::nvls, "collectives inside a node may use NVLink multicast (NVLS)");
  d.optional("amax_every_micro_batch", &Streams::amax_every_micro_batch,
             "FP8 scaling synchronises the data-parallel ranks every micro-batch");
  d.optional(
      "tp_pieces", &Streams::tp_pieces,
      "tensor-parallel gathers and the scatters of forward run beside the products that want or make them, which "
      "are cut: after a gather in as many pieces as ranks, before a scatter in four");
  d.optional("tp_scatter_slowdown", &Streams::tp_scatter_slowdown,
             "time of the pieces before a scatter, which leave multiprocessors to it, over that with all of them",
             between(1, 2));
  d.optional("tp_piece_gap", &Streams::tp_piece_gap,
             "time of each such piece of a product beyond that of its kernel: flags, events");
  d.optional("amax_waits", &Streams::amax_waits,
             "with delayed scaling every pass of a chunk ends with an all-reduce of largest elements by all ranks of "
             "the stage, and what follows waits for it; else it runs beside");
}

namespace {

// Keys of releases that fuse little, and of kernels that stand by themselves.
void describe_eager(Description<Software::Kernels>& d) {
  using Kernels = Software::Kernels;
  d.optional("eager_elementwise", &Kernels::eager_elementwise,
             "norms, activations and additions run as kernels of their own, nothing is fused");
  d.optional("composite_norms", &Kernels::composite_norms,
             "eager norms are chains of FP32 kernels, as PyTorch's RMSNorm was before it had a kernel of its own");
  d.optional("scatter_add", &Kernels::scatter_add,
             "eager kernels: rate of adding rows to those of their tokens, on a chip of rated_peak; 0: as the memory");
  d.optional("scale_rows", &Kernels::scale_rows, "the same of scaling rows by the gates of their experts");
  d.optional(
      "rated_peak", &Kernels::rated_peak,
      "dense BF16 peak of the chip that scatter_add and scale_rows were measured on: others go in proportion; 0: they "
      "hold for any");
  d.optional(
      "scan_keys", &Kernels::scan_keys,
      "keys of attention that take as long as a Mamba-2 scan for each token that a token meets: half a chunk, and "
      "its states twice",
      above(0));
  d.optional("delta_rule", &Kernels::delta_rule,
             "kernels of gated delta rules: of flash-linear-attention (Triton) or of FlashQLA");
  d.optional("fused_delta", &Kernels::fused_delta,
             "what stands between a gated delta rule and its products is fused to a few kernels");
  d.optional("norm_backward_speed", &Kernels::norm_backward_speed,
             "eager kernels: bandwidth of a norm's backward over that of its forward", between(0.01, 10));
  d.optional("optimizer_efficiency", &Kernels::optimizer_efficiency,
             "bandwidth of the optimizer's kernel over the copy plateau; 0: as memory_efficiency", between(0, 1));
  d.optional("gradient_copy_passes", &Kernels::gradient_copy_passes,
             "times that an all-reduce of gradients reads or writes them beside the exchange: bucket copies, scaling",
             between(0, 20));
  d.optional("gather_copy_passes", &Kernels::gather_copy_passes,
             "times that ZeRO-3 reads or writes gathered weights (and gradients before their reduce-scatter) to copy "
             "them",
             between(0, 20));
}

}  // namespace

void Software::Kernels::describe(Description<Kernels>& d) {
  d.optional(
      "fused_experts", &Kernels::fused_experts,
      "activation, casts and biases of experts are part of their grouped products; else kernels of their own, biases "
      "expert by expert, and FP8 rows are padded");
  d.optional("attention_speed", &Kernels::attention_speed,
             "speed of the release's attention kernels over the fused flash attention that profiles hold", above(0));
  d.optional("attention_watts", &Kernels::attention_watts,
             "dynamic power of the release's attention kernels over that of the ones that profiles hold",
             between(0.1, 2));
  d.optional("balanced_context", &Kernels::balanced_context,
             "with context parallelism each rank holds an early and a late part of a causal sequence, so that all work "
             "alike; else parts in a row, and the last rank, which sees all keys, makes the others wait");
  d.optional("fused_attention", &Kernels::fused_attention,
             "attention is one kernel that keeps its scores to itself; else two batched products, softmax and dropout, "
             "whose scores go through memory and are kept for backward");
  d.optional("fused_latent_rotary", &Kernels::fused_latent_rotary,
             "positions of latent attention (MLA) and what takes its heads apart and joins them are one kernel each "
             "way; else eager ones");
  d.optional("fp8_attention", &Kernels::fp8_attention,
             "attention runs in FP8 too, between casts of what it takes and gives; with context parallelism only where "
             "fp8_context_attention says so");
  d.optional("transposes_frozen", &Kernels::transposes_frozen,
             "frozen FP8 weights are transposed for every gradient of an input, since Hopper's FP8 products want both "
             "operands along k; else transposed copies are kept, or products take any layout");
  d.optional("fp8_context_attention", &Kernels::fp8_context_attention,
             "FP8 attention can be cut over context-parallel ranks, too (Transformer Engine since 1.10); else it runs "
             "in BF16 there");
  d.optional("recompute_stops_early", &Kernels::recompute_stops_early,
             "full recomputation of a layer ends with the last tensor that its backward wants");
  d.optional("fp8_attention_speedup", &Kernels::fp8_attention_speedup, "FP8 attention kernels against BF16",
             at_least(1));
  d.optional(
      "gradient_accumulation_fusion", &Kernels::gradient_accumulation_fusion,
      "the products that give a weight's gradient add to it in memory, in the precision it is kept in; else they "
      "write BF16");
  d.optional("fp8_backward_slowdown", &Kernels::fp8_backward_slowdown,
             "time of FP8 matrix products in backward, which accumulate at full precision, against those in forward",
             at_least(1));
  d.optional("optimizer_bytes_per_parameter", &Kernels::optimizer_bytes_per_parameter,
             "bytes the optimizer moves for each trained parameter", between(0, 200));
  d.optional(
      "current_scaling", &Kernels::current_scaling,
      "the scale of an FP8 tensor is its own, and a kernel seeks its largest element before the cast; else it is "
      "that of earlier steps (delayed scaling)");
  d.optional("cast_traffic", &Kernels::cast_traffic,
             "bytes moved by FP8 cast kernels per byte of the BF16 operand of a linear layer", between(0, 20));
  d.optional("cast_transpose", &Kernels::cast_transpose,
             "further bytes per byte where the operand is also wanted transposed, for weight gradients",
             between(0, 20));
  d.optional("bias_sums", &Kernels::bias_sums,
             "biases are added by the activation and by dropout and residual, so that their gradients are sums of "
             "their own; else products and casts make them");
  d.optional("memory_efficiency", &Kernels::memory_efficiency,
             "bandwidth of fused memory-bound kernels over the copy plateau", between(0.01, 1));
  d.optional("traffic_fused", &Kernels::traffic_fused, "share of the counted traffic left after fusion and caching",
             between(0.01, 2));
  describe_eager(d);
}

void Software::Memory::describe(Description<Memory>& d) {
  d.optional("gradient_bytes_per_parameter", &Memory::gradient_bytes_per_parameter,
             "bytes exchanged between data-parallel ranks for each trained parameter", between(0.25, 8));
  d.optional("optimizer_state_bytes_per_parameter", &Memory::optimizer_state_bytes_per_parameter,
             "bytes of optimizer states for each trained parameter", between(0, 64));
  d.optional("frozen_fp8_bytes_per_parameter", &Memory::frozen_fp8_bytes_per_parameter,
             "bytes that a GPU holds for a frozen weight in FP8: 1 for the weight; more where the plans that a release "
             "ran show that it holds more, whatever that is",
             between(1, 4));
  d.optional("workspace", &Memory::workspace,
             "memory beside the framework's allocator: context, library workspaces, communication buffers");
  d.optional(
      "communicator", &Memory::communicator,
      "memory of each kind of group (tp, cp, pp, ep, dp) that exchanges, beside that: channels and their buffers");
  d.optional("gathers_again", &Memory::gathers_again,
             "with sequence parallelism inputs of products are kept as they were before their gather, which backward "
             "repeats; else gathered");
  d.optional("stores_fp8", &Memory::stores_fp8, "inputs of FP8 products are kept in FP8; else in BF16");
  d.optional("fp8_activation_input", &Memory::fp8_activation_input,
             "training in FP8 keeps the inputs of activation functions in FP8");
  d.optional(
      "loss", &Memory::loss,
      "logits: eager kernels with their FP32 copies, FP32 in their place, or one kernel that leaves gradients in "
      "the place of BF16 logits");
  d.optional("persistent_gradients", &Memory::persistent_gradients,
             "gradient buffers live through the whole step; else a step of one micro-batch frees them");
  d.optional("bucket_copies", &Memory::bucket_copies,
             "copies of the gradients that the buckets of a plain data-parallel exchange hold", between(0, 4));
  d.optional("gradient_views", &Memory::gradient_views,
             "gradients are views of the buckets of a plain data-parallel exchange, which live through the whole step; "
             "else tensors beside them");
  d.optional("products_workspace", &Memory::products_workspace,
             "workspaces of the library of matrix products, which the framework's allocator holds");
}

void Software::Phases::describe(Description<Phases>& d) {
  d.optional("step_fixed", &Phases::step_fixed, "fixed time of every step");
  d.optional("evaluation_fixed", &Phases::evaluation_fixed, "fixed time of an evaluation");
  d.optional("evaluation_per_batch", &Phases::evaluation_per_batch,
             "work of the host for each evaluated batch, or call of a pipeline, beside its launches");
  d.optional("first_step_extra", &Phases::first_step_extra, "extra time of the first step of a run");
  d.optional("wait_after_first_step", &Phases::wait_after_first_step, "wait after the first step of a run");
  d.optional("loader_start", &Phases::loader_start,
             "mean time from run_start until the data loaders of one accelerator's process are ready; no second step "
             "begins before those of all processes are");
  d.optional("loader_start_sigma", &Phases::loader_start_sigma, "its standard deviation from process to process");
  d.optional("wait_before_first_evaluation", &Phases::wait_before_first_evaluation,
             "wait before the first evaluation of a run");
  d.optional("first_evaluation_extra", &Phases::first_evaluation_extra, "extra time of the first evaluation");
  d.optional("init", &Phases::init, "initialisation before the clock starts");
  d.optional("init_warm_up", &Phases::init_warm_up, "the last part of it, which already runs training kernels");
  d.optional("release", &Phases::release, "time after the run until the job lets go of its accelerators");
}

void Software::describe(Description<Software>& d) {
  d.object("software", "Costs and habits of one software release.");
  d.required("name", &Software::name, "name of the release");
  d.optional("recipes_of", &Software::recipes_of,
             "systems whose recipes its settings are: nodes where NVLink ends, racks whose nodes it joins, or any; a "
             "run on others is warned");
  d.part(&Software::host);
  d.part(&Software::streams);
  d.part(&Software::kernels);
  d.part(&Software::memory);
  d.part(&Software::phases);
  d.optional("collectives", &Software::collectives,
             "tables of the collective library that the release ships (models/collectives), on accelerators that it "
             "drives; absent: the accelerator's own, or NCCL 2.27");
  d.optional("source", &Software::source, "where the numbers come from");
}

const CollectiveLibrary& library_of(const Software& software, const Accelerator& accelerator) {
  const CollectiveLibrary& own = accelerator.collectives ? *accelerator.collectives : default_library();
  return software.collectives && software.collectives->family == own.family ? *software.collectives : own;
}

}  // namespace tw
