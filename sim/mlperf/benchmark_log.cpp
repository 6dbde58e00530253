#include "mlperf/benchmark_log.hpp"

#include <map>

#include "core/text.hpp"

namespace tw::mlperf {
namespace {

// One log as text. "[section]" starts a section, then a line each: event (. a point, ( and ) the ends of an interval),
// key, value, and after | what the metadata hold beside file and line number. @submission stands for its five lines.
// Values that nobody simulates (learning rates, sizes of data sets) are those of the public log that `source` names.
struct Text {
  Benchmark benchmark;
  bool verified;
  const char* source;
  double target;
  bool lower_is_better;
  double epoch_samples;
  bool evaluated_offline;
  const char* lines;
};

constexpr const char* kLlama2Lora = R"([init]
. cache_clear true
( init_start null
@submission
. seed $seed
. global_batch_size $gbs
. train_samples 3901
. eval_samples $eval_samples
. opt_learning_rate_warmup_factor 0.0
. opt_adamw_weight_decay 0.0001
. opt_gradient_clip_norm 0.3
. gradient_accumulation_steps $ga
. opt_learning_rate_training_steps 1024
. opt_base_learning_rate 0.0004
. lora_rank $lora_rank
. lora_alpha 32
) init_stop null
[start]
( run_start null
[block_begin]
( block_start null | "samples_count": $samples
[block_end]
. tracked_stats {"throughput": $throughput} | "step": $samples
) block_stop null | "samples_count": $samples
[evaluation_begin]
( eval_start null | "samples_count": $samples
[evaluation_end]
. eval_accuracy $accuracy | "samples_count": $samples
) eval_stop null | "samples_count": $samples
[stop]
) run_stop $accuracy | "samples_count": $samples, "status": "$status")";

constexpr const char* kBert = R"([init]
. cache_clear true
( init_start null
@submission
. seed $seed
. global_batch_size $gbs
. d_batch_size $lbs
. gradient_accumulation_steps $ga
. max_predictions_per_seq 76
. opt_learning_rate_training_steps 3680.0
. num_warmup_steps 0
. opt_base_learning_rate 0.00096
. opt_lamb_epsilon 1e-06
. opt_epsilon 1e-06
. opt_lamb_beta_1 0.60466
. opt_lamb_beta_2 0.85437
. opt_lamb_weight_decay_rate 0.1
. opt_learning_rate_warmup_steps 0
. opt_lamb_learning_rate_decay_poly_power 1.0
. start_warmup_step 0
) init_stop null
[start]
( run_start null
( epoch_start null | "epoch_num": 0
( block_start null | "first_epoch_num": 1, "epoch_count": 1
[block_end]
. tracked_stats {"throughput": $throughput} | "epoch_num": $samples
[evaluation_begin]
( eval_start $samples | "epoch_num": $samples
[evaluation_end]
) eval_stop $samples | "epoch_num": $samples
. eval_accuracy $accuracy | "epoch_num": $samples
[stop]
) block_stop null | "first_epoch_num": 1
) epoch_stop null | "epoch_num": $samples
. train_samples $samples
. eval_samples $eval_samples
) run_stop null | "status": "$status"
. tracked_stats {"throughput": $run_throughput, "epoch_num": $samples} | "step": $steps)";

constexpr const char* kGpt3 = R"([init]
. cache_clear true
( init_start null
@submission
. seed $seed
. global_batch_size $gbs
. opt_name "adam"
. opt_base_learning_rate 2e-05
. opt_end_learning_rate 2e-06
. opt_adam_beta_1 0.9
. opt_adam_beta_2 0.95
. opt_adam_epsilon 1e-08
. opt_weight_decay 0.1
. opt_learning_rate_decay_steps 72400
. opt_learning_rate_warmup_steps 176
. opt_learning_rate_decay_schedule "cosine with linear warmup"
. opt_gradient_clip_norm 1.0
. init_checkpoint_step 2667
. gradient_accumulation_steps $ga
. max_sequence_length $sequence
. eval_samples 11590004
) init_stop null
[start]
( run_start null
( epoch_start null | "epoch_num": 0
[block_begin]
( block_start null | "first_epoch_num": $first_tokens, "epoch_count": $count_tokens
[block_end]
) block_stop null | "first_epoch_num": $first_tokens, "epoch_count": $count_tokens
[evaluation_begin]
( eval_start null | "epoch_num": $tokens
[evaluation_end]
. eval_accuracy $accuracy | "epoch_num": $tokens
) eval_stop null | "epoch_num": $tokens
[stop]
) run_stop null | "status": "$status"
. trained_samples $tokens
. train_samples $tokens
) epoch_stop null | "epoch_num": $tokens)";

constexpr const char* kStableDiffusion = R"([init]
. cache_clear true
( init_start null
. seed $seed
. gradient_accumulation_steps $ga
. global_batch_size $gbs
. opt_name "adamw"
. opt_adamw_beta_1 0.9
. opt_adamw_beta_2 0.999
. opt_adamw_epsilon 1e-08
. opt_adamw_weight_decay 0.01
. opt_base_learning_rate 0.00016384
. opt_learning_rate_warmup_steps 1000
. train_samples 6513144
. eval_samples 30000
@submission
) init_stop null
[start]
( run_start null
[block_begin]
( block_start "training_step" | "samples_count": $first
[block_end]
) block_stop "training_step" | "samples_count": $samples
[evaluation_begin]
( eval_start null | "samples_count": $samples
[evaluation_end]
) eval_stop null | "samples_count": $samples
. eval_accuracy $accuracy | "samples_count": $samples, "metric": "FID"
. eval_accuracy 0.15 | "samples_count": $samples, "metric": "CLIP"
[stop]
) run_stop null | "status": "$status", "step_num": $steps)";

constexpr const char* kResnet = R"([init]
@submission
. cache_clear true
( init_start null
. seed $seed
. model_bn_span $lbs
. sgd_opt_end_learning_rate 0.0001
. lars_opt_learning_rate_decay_poly_power 2
. lars_opt_end_learning_rate 0.0001
. d_batch_size $lbs
. s_optimizer "sgdwfastlars"
. s_network "resnet-v1b-mainloop-fl"
. s_process "horovod"
. global_batch_size $gbs
. gradient_accumulation_steps $ga
. opt_name "lars"
. lars_epsilon 0
. lars_opt_weight_decay 5e-05
. lars_opt_momentum 0.9
. lars_opt_base_learning_rate 11.0
. lars_opt_learning_rate_warmup_epochs 2
. lars_opt_learning_rate_decay_steps 37
) init_stop null
[start]
( run_start null
. train_samples 1281167
. eval_samples $eval_samples
[block_begin]
( block_start null | "first_epoch_num": $first_epoch, "epoch_count": $epochs
[epoch_begin]
( epoch_start null | "epoch_num": $epoch_number
[epoch_end]
) epoch_stop null | "epoch_num": $epoch_number
. tracked_stats {"throughput": $throughput} | "step": $epoch_number
[evaluation_begin]
( eval_start null | "epoch_num": $epoch_number
[evaluation_end]
) eval_stop null | "epoch_num": $epoch_number
. eval_accuracy $accuracy | "epoch_num": $epoch_number
) block_stop null | "first_epoch_num": $first_epoch
[stop]
) run_stop null | "status": "$status", "epoch": $epoch_number)";

constexpr const char* kSsd = R"([init]
. cache_clear true
@submission
( init_start null
. seed $seed
. local_batch_size $lbs
. global_batch_size $gbs
. epoch_count 8
. first_epoch_num 0
. opt_name "adam"
. opt_base_learning_rate 8.5e-05
. opt_weight_decay 0
. opt_learning_rate_warmup_epochs 0
. opt_learning_rate_warmup_factor 0.001
. gradient_accumulation_steps $ga
) init_stop null
[start]
( run_start null
. train_samples $epoch_steps
. eval_samples $eval_samples
[epoch_begin]
( epoch_start $epochs_done | "epoch_num": $epochs_done
[epoch_end]
) epoch_stop $epochs_done | "epoch_num": $epochs_done
. tracked_stats {"throughput": $throughput} | "step": $epoch_number
[evaluation_begin]
( eval_start $epoch_number | "epoch_num": $epoch_number
[evaluation_end]
. eval_accuracy $accuracy | "epoch_num": $epoch_number
) eval_stop $epoch_number | "epoch_num": $epoch_number
[stop]
) run_stop null | "status": "$status"
. status "$status")";

constexpr const char* kUnet3d = R"([init]
. cache_clear true
( init_start null
@submission
. seed $seed
. opt_name "nag"
. opt_base_learning_rate 2.0
. opt_learning_rate_warmup_epochs 1000
. opt_learning_rate_decay_boundary_epochs []
. opt_learning_rate_decay_factor 1.0
. opt_weight_decay 0.0
. opt_momentum 0.9
. oversampling 0.4
. training_input_shape [128, 128, 128]
. validation_input_shape [128, 128, 128]
. validation_overlap 0.5
) init_stop null
[start]
( run_start null
. train_samples 168
. eval_samples $eval_samples
. global_batch_size $gbs
. gradient_accumulation_steps $ga
. samples_per_epoch 168
[block_begin]
( block_start null | "first_epoch_num": $first, "epoch_count": $count
[block_end]
. tracked_stats {"throughput": $throughput} | "step": $epoch_number
) block_stop null | "first_epoch_num": $first, "epoch_count": $count
[evaluation_begin]
( eval_start $samples | "epoch_num": $samples
[evaluation_end]
. eval_accuracy $accuracy | "epoch_num": $samples
) eval_stop $samples | "epoch_num": $samples
[stop]
) run_stop null | "status": "$status", "epoch": $samples)";

constexpr const char* kDlrm = R"([init]
. cache_clear true
( init_start null
@submission
. global_batch_size $gbs
. opt_name "adagrad"
. opt_base_learning_rate 0.004
. opt_adagrad_learning_rate_decay 0
. opt_weight_decay 0
. opt_adagrad_initial_accumulator_value 0.0
. opt_adagrad_epsilon 1e-08
. opt_learning_rate_warmup_steps 0
. opt_learning_rate_decay_start_step 0
. opt_learning_rate_decay_steps 0
. gradient_accumulation_steps $ga
. train_samples 4195197692 | "epoch_num": 0.0
. eval_samples $eval_samples | "epoch_num": 0.0
) init_stop null
[start]
( run_start null
( epoch_start null | "epoch_num": 0
[evaluation_begin]
( eval_start null | "epoch_num": $epoch
[evaluation_end]
. eval_accuracy $accuracy | "epoch_num": $epoch
) eval_stop null | "epoch_num": $epoch
[stop]
) run_stop null | "status": "$status", "epoch_num": $epoch
) epoch_stop null | "epoch_num": $epoch
. tracked_stats {"throughput": $run_throughput} | "step": $epoch)";

constexpr const char* kGnn = R"([init]
. cache_clear true
( init_start null
@submission
. seed $seed
. global_batch_size $gbs
. gradient_accumulation_steps $ga
. opt_name "adam"
. opt_base_learning_rate 0.002
) init_stop null
[start]
( run_start null
. train_samples 94605581
. eval_samples $eval_samples
( epoch_start null | "epoch_num": 1
[evaluation_begin]
( eval_start $epoch | "epoch_num": $epoch
[evaluation_end]
. eval_accuracy $accuracy | "epoch_num": $epoch
) eval_stop $epoch | "epoch_num": $epoch
[stop]
. tracked_stats {"throughput": $run_throughput} | "epoch_num": $epoch
) epoch_stop null | "epoch_num": $epoch
) run_stop null | "status": "$status", "epoch_num": $epoch
. status "$status" | "status": "$status", "epoch_num": $epoch)";

// Targets: the quality targets of the v4.0 rules (mlcommons/training_policies). Orders: public v4.0 logs, once for each
// key where a real log repeats a line for every process, without the lines that name initialised tensors.
constexpr Text kTexts[] = {
    {Benchmark::llama2_70b_lora, true, "reference/mlperf_logs", 0.925, true, 0, false, kLlama2Lora},
    {Benchmark::bert, false, "training_results_v4.0, ASUSTeK/results/ESC_N8A-E12/bert", 0.72, false, 0, false, kBert},
    {Benchmark::gpt3, false, "training_results_v4.0, NVIDIA/results/eos_n64_ngc24.04_nemo/gpt3", 2.69, true, 0, false,
     kGpt3},
    {Benchmark::stable_diffusion, false, "training_results_v4.0, NVIDIA/results/eos_n64_ngc24.04_nemo/stable_diffusion",
     90, true, 0, true, kStableDiffusion},
    {Benchmark::resnet, false, "training_results_v4.0, ASUSTeK/results/ESC8000A-E12-8xH100-PCIE-80GB/resnet", 0.759,
     false, 1281167, false, kResnet},
    {Benchmark::ssd, false, "training_results_v4.0, ASUSTeK/results/ESC8000A-E12-8xH100-PCIE-80GB/ssd", 0.34, false,
     1170301, false, kSsd},
    {Benchmark::unet3d, false, "training_results_v4.0, ASUSTeK/results/ESC8000A-E12-8xH100-PCIE-80GB/unet3d", 0.908,
     false, 168, false, kUnet3d},
    {Benchmark::dlrm_dcnv2, false, "training_results_v4.0, ASUSTeK/results/ESC_N8A-E12/dlrm_dcnv2", 0.80275, false,
     4195197692, false, kDlrm},
    {Benchmark::gnn, false, "training_results_v4.0, ASUSTeK/results/ESC_N8A-E12/gnn", 0.72, false, 94605581, false,
     kGnn},
};

LogLine parse_line(const std::string& text) {
  LogLine line;
  line.event = text[0] == '(' ? "INTERVAL_START" : text[0] == ')' ? "INTERVAL_END" : "POINT_IN_TIME";
  const size_t key_end = text.find(' ', 2), bar = text.find(" | ");
  line.key = text.substr(2, key_end - 2);
  line.value = text.substr(key_end + 1, bar == std::string::npos ? bar : bar - key_end - 1);
  if (bar != std::string::npos) line.metadata = text.substr(bar + 3);
  return line;
}

BenchmarkLog parse(const Text& text) {
  BenchmarkLog log;
  log.benchmark = text.benchmark, log.verified = text.verified, log.source = text.source;
  log.target = text.target, log.lower_is_better = text.lower_is_better;
  log.epoch_samples = text.epoch_samples, log.evaluated_offline = text.evaluated_offline;
  const std::map<std::string, std::vector<LogLine>*> sections{{"[init]", &log.init},
                                                              {"[start]", &log.start},
                                                              {"[block_begin]", &log.block_begin},
                                                              {"[epoch_begin]", &log.epoch_begin},
                                                              {"[epoch_end]", &log.epoch_end},
                                                              {"[block_end]", &log.block_end},
                                                              {"[evaluation_begin]", &log.evaluation_begin},
                                                              {"[evaluation_end]", &log.evaluation_end},
                                                              {"[stop]", &log.stop}};
  std::vector<LogLine>* section = nullptr;
  for (const std::string& line : split(text.lines, '\n')) {
    if (line[0] == '[') {
      section = sections.at(line);
    } else if (line == "@submission") {
      section->push_back({"POINT_IN_TIME", "submission_benchmark", '"' + choice_name(text.benchmark) + '"', ""});
      section->push_back({"POINT_IN_TIME", "submission_org", "\"$org\"", ""});
      section->push_back({"POINT_IN_TIME", "submission_division", "\"closed\"", ""});
      section->push_back({"POINT_IN_TIME", "submission_status", "\"research\"", ""});
      section->push_back({"POINT_IN_TIME", "submission_platform", "\"$platform\"", ""});
    } else {
      section->push_back(parse_line(line));
    }
  }
  return log;
}

}  // namespace

const BenchmarkLog& benchmark_log(Benchmark benchmark) {
  static const std::map<Benchmark, BenchmarkLog> logs = [] {
    std::map<Benchmark, BenchmarkLog> all;
    for (const Text& text : kTexts) all.emplace(text.benchmark, parse(text));
    return all;
  }();
  return logs.at(benchmark);
}

}  // namespace tw::mlperf
