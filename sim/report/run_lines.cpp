#include "report/run_lines.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <vector>

#include "report/numbers.hpp"

namespace tw::report {
namespace {

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string of_mean(const Spread& s) {
  return s.mean && s.sd && *s.mean > 0 ? fmt::format(", sd {}", percent(*s.sd / *s.mean)) : "";
}

// What the seeded runs say together, in plain words.
void series_lines(std::string& out, const Result& r) {
  const SeriesResult& s = r.series_of_runs;
  const Distribution& t = r.run.time_to_train_s;
  if (s.count < 2 || !t.sd || !t.mean) return;
  line(out, fmt::format("over {} runs", count_text(s.count)),
       fmt::format("mean {}, sd {} ({}); nine runs of ten end between {} and {}", span_text(*t.mean), span_text(*t.sd),
                   percent(*t.sd / *t.mean), span_text(t.p5.value_or(*t.mean)), span_text(t.p95.value_or(*t.mean))));
  if (s.count >= 3) line(out, "olympic mean", or_dash(t.olympic, time_text));
  if (s.samples.sd && *s.samples.sd > 0)
    line(out, "samples", fmt::format("mean {}{}", count_text(std::round(*s.samples.mean)), of_mean(s.samples)));
  if (s.total_dc_j.mean)
    line(out, "energy, DC",
         fmt::format("mean {}{}; p5 {}, p95 {}", energy_text(*s.total_dc_j.mean), of_mean(s.total_dc_j),
                     or_dash(s.total_dc_j.p5, energy_text), or_dash(s.total_dc_j.p95, energy_text)));
  if (s.half_width_pct && *s.half_width_pct > 0) {
    line(out, "how sure", fmt::format("the mean is right to +-{:.2g} % with 95 % certainty", *s.half_width_pct));
    line(out, "",
         fmt::format("runs for +-1 %: {}, for +-2 %: {}, for +-5 %: {}", or_dash(s.needed_1pct, count_text),
                     or_dash(s.needed_2pct, count_text), or_dash(s.needed_5pct, count_text)));
  }
}

void checkpoint_lines(std::string& out, const RunResult& run) {
  const CheckpointResult& c = run.checkpoints;
  if (!c.bytes) return;
  line(out, "checkpoints",
       fmt::format("{} of {}, one every {}; training waited {}", or_dash(c.count, count_text), bytes_text(*c.bytes),
                   or_dash(c.interval_s, span_text), or_dash(run.checkpoint_s, span_text)));
  line(out, "",
       fmt::format("write {}, restore {}, bound by {}", or_dash(c.write_s, span_text), or_dash(c.read_s, span_text),
                   c.bottleneck));
}

void failure_lines(std::string& out, const RunResult& run) {
  const FailuresResult& f = run.failures;
  if (!f.count) return;
  std::vector<std::string> kinds;
  for (const auto& [name, count] : f.by_component) kinds.push_back(fmt::format("{} {}", name, count_text(count)));
  line(out, "failures",
       fmt::format("{}{}; one every {} expected", count_text(*f.count), kinds.empty() ? "" : " (" + joined(kinds) + ")",
                   or_dash(f.mtbf_s, span_text)));
  if (*f.count > 0)
    line(out, "",
         fmt::format("work lost {}, down {}{}", or_dash(f.rework_s, span_text), or_dash(f.restart_s, span_text),
                     f.spare_wait_s.value_or(0) > 0
                         ? fmt::format(", of it {} without a spare node", span_text(*f.spare_wait_s))
                         : ""));
  if (!f.best_interval_s) return;
  line(out, "best checkpoint interval",
       fmt::format("{} by simulation (goodput {}), {} by Young and Daly", span_text(*f.best_interval_s),
                   or_dash(f.best_goodput, percent), or_dash(f.daly_interval_s, span_text)));
  if (f.present_goodput) line(out, "", fmt::format("the interval in use gives {}", percent(*f.present_goodput)));
}

}  // namespace

namespace {

constexpr size_t kWidth = 80;

// A blank that no line breaks at, until wrapped() makes a blank of it.
constexpr char kTied = '\x01';

}  // namespace

std::string tied(std::string text) {
  std::replace(text.begin(), text.end(), ' ', kTied);
  return text;
}

std::string wrapped(const std::string& words, const std::string& first_indent, const std::string& indent) {
  // A number stays with its unit.
  std::string text = words;
  for (size_t i = 1; i + 1 < text.size(); ++i)
    if (text[i] == ' ' && text[i - 1] >= '0' && text[i - 1] <= '9' &&
        (std::isalpha(static_cast<unsigned char>(text[i + 1])) != 0 || text[i + 1] == '%'))
      text[i] = kTied;
  std::string out = first_indent;
  size_t column = first_indent.size();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const size_t length = end - at;
    if (column + length > kWidth && column > indent.size()) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += "\n" + indent;
      column = indent.size();
    }
    out.append(text, at, length);
    column += length;
    if (end < text.size()) {
      out += ' ';
      ++column;
    }
    at = end + 1;
  }
  std::replace(out.begin(), out.end(), kTied, ' ');
  return out + "\n";
}

void line(std::string& out, const std::string& name, const std::string& value) {
  if (!value.empty() && value != "-") out += wrapped(value, fmt::format("    {:<26} ", name), std::string(31, ' '));
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string span_text(double s) {
  if (s >= 2 * 86400) return plain(s / 86400) + " days";
  if (s >= 2 * 3600) return plain(s / 3600) + " h";
  if (s >= 120 * 5) return plain(s / 60) + " min";
  return plain(s) + " s";
}

std::string run_lines(const Result& r) {
  const RunResult& run = r.run;
  const Distribution& t = run.time_to_train_s;
  std::string out = r.series_of_runs.count > 1
                        ? fmt::format("  Run (run_start to run_stop); single figures are those of seed {}\n", r.seed)
                        : "  Run (run_start to run_stop)\n";
  const bool days = t.mean.value_or(0) >= 2 * 86400;
  line(out, "time to train", or_dash(t.mean, days ? span_text : time_text));
  if (run.stopped_at_s)
    line(out, "stopped",
         fmt::format("at {}, before its target; what follows is counted up to then", span_text(*run.stopped_at_s)));
  series_lines(out, r);
  if (t.official && t.olympic && std::abs(*t.official / *t.olympic - 1) > 1e-6)
    line(out, "MLPerf score",
         fmt::format("{}, olympic mean x RCP factor {} ({})", time_text(*t.official),
                     plain(r.series_of_runs.rcp_factor.value_or(1), 6), r.series_of_runs.rcp_rule));
  std::vector<std::string> parts;
  if (run.steps) parts.push_back(count_text(*run.steps) + " steps");
  if (run.samples) parts.push_back(count_text(*run.samples) + " samples");
  if (run.evaluations) parts.push_back(count_text(*run.evaluations) + " evaluations");
  line(out, "work", joined(parts));
  line(out, "first step", or_dash(run.first_step_s, time_text));
  line(out, "waits", or_dash(run.wait_s, time_text));
  if (run.evaluations.value_or(0) > 0 && run.eval_s)
    line(out, "one evaluation",
         time_text(*run.eval_s) + (run.eval_first_s ? ", the first " + time_text(*run.eval_first_s) : ""));
  checkpoint_lines(out, run);
  failure_lines(out, run);
  if (run.failures.count || run.checkpoints.bytes)
    line(out, "goodput",
         or_dash(run.goodput, [](double v) { return percent(v) + " of the time is training that counts"; }));
  if (run.slow_s.value_or(0) > 0) line(out, "waited for slow nodes", span_text(*run.slow_s));
  if (run.data.batch_s)
    line(out, "reading a batch",
         fmt::format("{}, bound by {}; a step waits {}", time_text(*run.data.batch_s), run.data.bottleneck,
                     or_dash(run.data.wait_s, time_text)));
  if (run.lost_s.value_or(0) > 0) line(out, "lost to failures", span_text(*run.lost_s));
  if (run.init_s) line(out, "init, outside the clock", time_text(*run.init_s));
  if (run.days_per_1T_tokens) {
    std::string text = plain(*run.days_per_1T_tokens) + " days";
    if (run.days_per_1T_tokens_effective && (run.failures.count || run.checkpoints.bytes))
      text += fmt::format(" of steps, {} days with everything else", plain(*run.days_per_1T_tokens_effective));
    line(out, "1 trillion tokens", text);
  }
  return out;
}

}  // namespace tw::report
