// Loading a hall: its series, its jobs' scenarios on its clusters, and every fault.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/currency.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "facility/facility.hpp"
#include "power/network_rule.hpp"
#include "study/hall_study.hpp"
#include "topology/fabric.hpp"

namespace tw {
namespace {

using hall::HallInput;
using hall::HallJob;

// Values of an hourly series from the hall's start on; beyond its ends the nearest holds.
hall::StepSeries steps_of(const HourlySeries& series, int64_t start_utc_s, double factor) {
  hall::StepSeries steps(series.values.front() * factor);
  for (size_t h = 0; h < series.values.size(); ++h) {
    const auto from_s = static_cast<double>(series.begin_utc_s + 3600 * static_cast<int64_t>(h) - start_utc_s);
    steps.then(from_s, series.values[h] * factor);
  }
  return steps;
}

// Jobs of a series are called by its name and their number.
bool is_one_of(const std::string& name, const HallJob& series) {
  const std::string head = series.name + "-";
  if (series.count < 2 || name.rfind(head, 0) != 0) return false;
  const std::string number = name.substr(head.size());
  if (number.empty() || number.size() > 7 || number.front() == '0') return false;
  if (!std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) return false;
  return std::stoi(number) <= series.count;
}

std::string cover_problem(const SeriesCover& cover, const std::string& start, double lasts_s) {
  return fmt::format("the {} series goes from {} to {}, the hall begins at {} and lasts {:.4g} h", cover.what,
                     cover.from, cover.to, start, lasts_s / 3600);
}
constexpr const char* kLongerSeries = "a longer series, or \"series_gaps\": \"hold\" of the site";

// "0.12 EUR/kWh": EUR. Empty where there is no amount.
std::string currency_in(const nlohmann::json& amount) {
  if (!amount.is_string()) return "";
  const std::string text = amount.get<std::string>(), money = text.substr(0, text.find('/'));
  const size_t last = money.find_last_not_of(' ');
  if (last == std::string::npos || last < 2) return "";
  const std::string code = money.substr(last - 2, 3);
  return is_currency(code) ? code : "";
}

// What a hall says itself about every job, and a job's own overrides cannot.
const char* owned_by_hall(const std::string& set) {
  for (const char* pointer : {"/cluster", "/placement", "/site", "/jobs", "/traffic", "/run/start", "/run/reliability",
                              "/run/power_failures"}) {
    const std::string own = pointer, named = set.substr(0, set.find('='));
    if (named == own || named.rfind(own + "/", 0) == 0) return pointer;
  }
  return nullptr;
}

class Loader {
 public:
  Loader(const Document& document, const std::string& file, LoadedHall& loaded, Faults& faults)
      : document_(document), file_(file), out_(loaded), in_(loaded.input), root_{&document, "", &faults, {}} {}

  void load() {
    check_site(in_.site, root_.at("site"));
    if (!in_.start.empty()) start(root_.at("start"));
    if (in_.clusters.empty()) root_.at("clusters").fault("a hall without clusters", "at least one");
    for (size_t c = 0; c < in_.clusters.size(); ++c) check_cluster(c);
    load_series();
    if (in_.budget) load_budget(root_.at("budget"));
    for (size_t j = 0; j < in_.jobs.size(); ++j) load_job(j);
    for (size_t i = 0; i < in_.maintenance.size(); ++i) {
      const hall::MaintenanceInput& m = in_.maintenance[i];
      const ReadContext at = root_.at("maintenance").at(i);
      const int c = cluster_named(m.cluster, at);
      if (c >= 0 && m.first + m.count > in_.clusters[static_cast<size_t>(c)].cluster.nodes())
        at.at("count").fault(fmt::format("there is no node {}", m.first + m.count - 1),
                             fmt::format("0 to {}", in_.clusters[static_cast<size_t>(c)].cluster.nodes() - 1));
    }
    if (in_.money)
      for (const auto& entry : in_.money->node) cluster_named(entry.first, root_.at("money").at("node"));
    if (in_.embodied)
      for (const auto& entry : in_.embodied->node) cluster_named(entry.first, root_.at("embodied").at("node"));
    check_currencies();
    if (in_.preempt && in_.queue == hall::Queue::first_come)
      root_.at("preempt").fault("a queue by arrival knows no priorities", "with queue backfill or priority");
    if (in_.grid_limits && in_.grid_limits->band_to < in_.grid_limits->band_from)
      root_.at("grid_limits").at("band_to").fault("the band ends before it begins", "above band_from");
  }

 private:
  int cluster_named(const std::string& name, const ReadContext& at) {
    if (name.empty() && !in_.clusters.empty()) return 0;
    std::vector<std::string> names;
    for (size_t c = 0; c < in_.clusters.size(); ++c) {
      if (in_.clusters[c].name == name) return static_cast<int>(c);
      names.push_back(in_.clusters[c].name);
    }
    at.fault(fmt::format("no cluster \"{}\" in the hall", printable(name)), suggest(name, names));
    return -1;
  }

  void check_cluster(size_t c) {
    hall::HallCluster& cluster = in_.clusters[c];
    const ReadContext at = root_.at("clusters").at(c);
    for (size_t other = 0; other < c; ++other)
      if (in_.clusters[other].name == cluster.name)
        at.at("name").fault(fmt::format("two clusters are called \"{}\"", printable(cluster.name)), "a name each");
    check_fabric(cluster.cluster, at.at("cluster"));
    if (cluster.spares >= cluster.cluster.nodes())
      at.at("spares").fault(fmt::format("{} of {} nodes are spares", cluster.spares, cluster.cluster.nodes()), "fewer");
    const FabricType& type = cluster.cluster.fabric;
    const NetworkRule own = type.network_rule;
    if (!cluster.network_rule)
      cluster.network_rule = own != NetworkRule::by_load && rule_defined(own, type) ? own : NetworkRule::as_stated;
    else if (*cluster.network_rule == NetworkRule::by_load || !rule_defined(*cluster.network_rule, type))
      at.at("network_rule")
          .fault(fmt::format("{} is undefined here", choice_name(*cluster.network_rule)),
                 "as_stated or whole_switches");
  }

  std::optional<int64_t> start(const ReadContext& at) {
    if (start_) return start_;
    const auto time = parse_time(in_.start, parse_utc_offset(in_.site.utc_offset));
    if (time) return start_ = time->utc_s;
    if (!start_told_)
      at.fault(in_.start.empty() ? "an hourly series needs the hall's start"
                                 : fmt::format("\"{}\" is no time with its offset from UTC", printable(in_.start)),
               "\"start\": \"2025-06-02T00:00+00:00\"");
    start_told_ = true;
    return std::nullopt;
  }

  void use(hall::StepSeries& steps, const std::optional<HourlySeries>& series, double factor, const char* what) {
    if (!series) return;
    const auto begin = start(root_.at("start"));
    if (!begin) return;
    steps = steps_of(*series, *begin, factor);
    out_.warnings.insert(out_.warnings.end(), series->remarks.begin(), series->remarks.end());
    const double needs_s = in_.lasts ? in_.lasts->value() : 0;
    const SeriesCover cover{what, series->text(series->begin_utc_s), series->text(series->end_utc_s()),
                            static_cast<double>(series->end_utc_s() - *begin)};
    if (series->covers(*begin, needs_s)) {
      if (!in_.lasts) out_.covers.push_back(cover);  // nobody knows yet how long it is needed
      return;
    }
    const std::string problem = cover_problem(cover, in_.start, needs_s);
    if (in_.site.series_gaps == SeriesGaps::hold)
      out_.warnings.push_back(problem + ": its nearest value is held");
    else
      root_.at("start").fault(problem, kLongerSeries);
  }

  std::optional<HourlySeries> hourly(const std::string& name, const char* column, const ReadContext& at) {
    if (name.empty()) return std::nullopt;
    const auto path = find_input_file(name, file_);
    if (!path) {
      at.fault(fmt::format("no file \"{}\"", printable(name)), suggest_file(name));
      return std::nullopt;
    }
    return read_hourly(read_file(*path), *path, column, in_.site, *root_.faults);
  }

  void load_series() {
    const SiteSeries site = load_site_series(in_.site, document_.origin("/site").file, *root_.faults);
    out_.carbon_kg_per_j = hall::StepSeries(in_.site.carbon_intensity.value());
    use(out_.carbon_kg_per_j, site.location_kg_per_kwh, 1 / joules_per_kwh, "carbon");
    out_.priced = in_.site.price || site.price_per_kwh;
    if (in_.site.price) out_.price_per_j = hall::StepSeries(in_.site.price->value.value());
    use(out_.price_per_j, site.price_per_kwh, 1 / joules_per_kwh, "price");
    out_.currency = in_.site.price ? in_.site.price->currency : site.currency;
    out_.outside_c = hall::StepSeries(in_.cooling ? in_.cooling->outside.value() : 0);
    if (in_.cooling)
      use(out_.outside_c, hourly(in_.cooling->weather, "temperature_c", root_.at("cooling").at("weather")), 1,
          "weather");
  }

  // Amounts are never converted, so a hall adds up those of one currency alone: the site's, else that of the first.
  void check_currencies() {
    const auto check = [&](const nlohmann::json& amount, const ReadContext& at) {
      const std::string code = currency_in(amount);
      if (out_.currency.empty()) out_.currency = code;
      if (!code.empty() && code != out_.currency)
        at.fault(fmt::format("an amount in {} beside others in {}", code, out_.currency), "one currency");
    };
    const nlohmann::json& root = document_.root();
    if (in_.money) {
      const nlohmann::json& money = root["money"];
      const ReadContext at = root_.at("money");
      if (money.contains("node"))
        for (const auto& [cluster, price] : money["node"].items()) check(price, at.at("node").at(cluster));
      for (const char* key : {"switch", "cable", "demand_charge"})
        if (money.contains(key)) check(money[key], at.at(key));
    }
    for (size_t j = 0; j < in_.jobs.size(); ++j) {
      if (!in_.jobs[j].price_below) continue;
      const ReadContext at = root_.at("jobs").at(j).at("price_below");
      if (!out_.priced)
        at.fault("the site has no price to go by", "\"price\" or \"price_series\" of the site");
      else
        check(root["jobs"][j]["price_below"], at);
    }
  }

  void load_budget(const ReadContext& at) {
    const hall::BudgetInput& b = *in_.budget;
    if ((b.power ? 1 : 0) + (b.hourly.empty() ? 0 : 1) + (b.signal.empty() ? 0 : 1) != 1)
      return at.fault("one of \"power\", \"hourly\" and \"signal\" says what the hall may take", "exactly one");
    if (b.power) out_.limit_w = hall::StepSeries(b.power->value());
    if (!b.hourly.empty()) {
      if (b.hourly.size() != 24)
        return at.at("hourly").fault(fmt::format("{} values", b.hourly.size()), "24, one for each hour of the day");
      out_.limit_w = hall::StepSeries(b.hourly.front().value());
      for (int h = 1; h < 24; ++h) out_.limit_w.then(3600.0 * h, b.hourly[static_cast<size_t>(h)].value());
      out_.limit_w.repeat(86400);
    }
    use(out_.limit_w, hourly(b.signal, "limit_kw", at.at("signal")), 1e3, "budget");
    if (!(out_.limit_w.least() > 0)) at.fault("the budget falls to nothing", "above 0");
  }

  void load_job(size_t index) {
    const HallJob& job = in_.jobs[index];
    const ReadContext at = root_.at("jobs").at(index);
    HallKind kind;
    kind.entry = index;
    kind.cap_w = {0};
    kind.cluster = cluster_named(job.cluster, at.at("cluster"));
    for (size_t other = 0; other < in_.jobs.size(); ++other) {
      if (other < index && in_.jobs[other].name == job.name)
        at.at("name").fault(fmt::format("two jobs are called \"{}\"", printable(job.name)), "a name each");
      if (job.count == 1 && is_one_of(job.name, in_.jobs[other]))
        at.at("name").fault(fmt::format("one of the series \"{}\" is called \"{}\", too",
                                        printable(in_.jobs[other].name), printable(job.name)),
                            "a name each");
    }
    if (job.count > 1 && job.every.value() <= 0)
      at.at("count").fault("several jobs, and no time between them", "\"every\"");
    if (job.checkpoint_write.value() > 0 && job.checkpoint.value() <= 0)
      at.at("checkpoint_write").fault("checkpoints that are never written", "\"checkpoint\"");
    if (job.scenario.empty())
      check_given(job, at);
    else if (kind.cluster >= 0)
      load_scenarios(job, kind, at);
    out_.kinds.push_back(std::move(kind));
  }

  void check_given(const HallJob& job, const ReadContext& at) {
    if (job.nodes < 1 || job.duration.value() <= 0 || job.node_power.value() <= 0)
      return at.fault("neither a scenario nor \"nodes\", \"duration\" and \"node_power\"", "one of them");
    double above_w = job.node_power.value(), slowdown = 1, cap_w = hall::kNever;
    for (size_t k = 0; k < job.points.size(); ++k) {
      const hall::GivenPoint& p = job.points[k];
      if (p.node_power.value() >= above_w || p.slowdown < slowdown)
        at.at("points").at(k).fault("a lower cap that takes no less power, or no more time",
                                    "falling power, rising slowdown");
      if (p.cap.value() >= cap_w)
        at.at("points").at(k).at("cap").fault("a cap that is no lower than the one before", "falling caps");
      above_w = p.node_power.value(), slowdown = p.slowdown, cap_w = p.cap.value();
    }
  }

  void add_caps(const HallJob& job, HallKind& kind, const Accelerator& board, const ReadContext& at) {
    const Power context = board.power.context;
    for (size_t k = 0; k < job.caps.size(); ++k) {
      if (job.caps[k] <= context)  // as for the board's own limit
        at.at("caps").at(k).fault(fmt::format("{} is not above what the board draws with a job loaded, {}",
                                              to_text(job.caps[k]), to_text(context)),
                                  "the limit must leave room for work");
      kind.cap_w.push_back(job.caps[k].value());
    }
    if (job.caps.empty() && in_.budget &&
        std::count(in_.budget->keep.begin(), in_.budget->keep.end(), hall::Keep::cap) > 0)
      for (const double share : {6.0 / 7, 5.0 / 7, 4.0 / 7})
        kind.cap_w.push_back(std::round(share * board.board_limit.value() / 10) * 10);
    // Highest first.
    std::sort(kind.cap_w.begin() + 1, kind.cap_w.end(), std::greater<>());
  }

  void load_scenarios(const HallJob& job, HallKind& kind, const ReadContext& at) {
    if (job.nodes > 0 || job.duration.value() > 0 || job.node_power.value() > 0 || !job.points.empty())
      return at.fault("a scenario, and a duration or power of its own", "one of them; \"set\" changes the scenario");
    const auto path = find_input_file(job.scenario, file_);
    if (!path)
      return at.at("scenario")
          .fault(fmt::format("no file \"{}\"", printable(job.scenario)), suggest_file(job.scenario));
    const hall::HallCluster& place = in_.clusters[static_cast<size_t>(kind.cluster)];
    add_caps(job, kind, place.cluster.node.accelerator, at);
    for (size_t i = 0; i < job.set.size(); ++i)
      if (const char* const pointer = owned_by_hall(job.set[i]))
        return at.at("set").at(i).fault(fmt::format("{} is the hall's to say", pointer),
                                        "overrides of the scenario's other keys");
    std::vector<std::string> set{
        "/cluster=" + document_.root()["clusters"][static_cast<size_t>(kind.cluster)]["cluster"].dump(),
        fmt::format("/placement={{\"rule\": \"{}\"}}", in_.placement == hall::Placing::spread ? "spread" : "packed"),
        "/reference=null",
        "/jobs=null",
        "/traffic=null",
        "/run/start=null",
        "/run/reliability=null",
        "/run/power_failures=null"};
    set.insert(set.end(), job.set.begin(), job.set.end());
    Faults mine;
    const LoadedScenario rated = load_scenario(*path, set, mine);
    for (Fault fault : mine.list()) {
      if (fault.file == "--set") fault.file = fmt::format("{}: {}: set", file_, at.pointer);
      root_.faults->add(fault);
    }
    if (!mine.empty()) return;
    // Others on the uplinks of its units, where these do not carry all that adapters send.
    const int within = in_.placement == hall::Placing::spread ? 1 : place.cluster.fabric.nodes_per_unit;
    if (uplink_nodes(place.cluster) < hall::kNever && rated.scenario.plan.nodes > within) kind.squeeze = {1, 2, 4, 8};
    // A lower limit in the file would count as what the board is made for, and move what is transferred to it.
    for (const double cap_w : kind.cap_w) {
      LoadedScenario capped = rated;
      if (cap_w > 0) {
        Power& limit = capped.scenario.cluster.node.accelerator.board_limit;
        limit = std::min(limit, watts(cap_w));
        capped.sha256 = sha256_hex(fmt::format("{} {} W", rated.sha256, limit.value()));
      }
      for (const double squeeze : kind.squeeze) {
        kind.scenario.push_back(capped);
        if (squeeze <= 1) continue;
        LoadedScenario& narrow = kind.scenario.back();
        narrow.scenario.cluster.fabric.uplink_bandwidth =
            Bandwidth::from_value(narrow.scenario.cluster.fabric.uplink_bandwidth.value() / squeeze);
        narrow.sha256 = sha256_hex(fmt::format("{} / {}", capped.sha256, squeeze));
      }
    }
  }

  const Document& document_;
  const std::string& file_;
  LoadedHall& out_;
  HallInput& in_;
  ReadContext root_;
  std::optional<int64_t> start_;
  bool start_told_ = false;
};

}  // namespace

std::vector<std::string> check_covers(const LoadedHall& loaded, double end_s) {
  std::vector<std::string> remarks;
  for (const SeriesCover& cover : loaded.covers) {
    if (end_s <= cover.until_s) continue;
    const std::string problem = cover_problem(cover, loaded.input.start, end_s);
    if (loaded.input.site.series_gaps != SeriesGaps::hold)
      throw InputError({{loaded.file, "/start", problem, kLongerSeries}});
    remarks.push_back(problem + ": its nearest value is held");
  }
  return remarks;
}

LoadedHall load_hall(const std::string& file, const std::vector<std::string>& overrides, Faults& faults) {
  LoadedHall loaded;
  loaded.file = file;
  const Document document = Document::load(file, description<HallInput>().info(), overrides, faults);
  Faults mine;
  loaded.input = read<HallInput>(document, mine);
  if (document.complete() && mine.empty()) Loader(document, file, loaded, mine).load();
  for (const Fault& fault : mine.list()) faults.add(fault);
  if (document.complete()) loaded.sha256 = sha256_hex(document.canonical());
  return loaded;
}

}  // namespace tw
