#include "core/outputs.hpp"
#include "study/validate.hpp"

namespace tw {

void RowOutcome::describe(Outputs<RowOutcome>& d) {
  d.computed("id", [](const RowOutcome& r) { return r.row.id; });
  d.computed("quantity", [](const RowOutcome& r) { return r.row.quantity; });
  d.computed("unit", [](const RowOutcome& r) { return r.row.unit; });
  d.computed("measured", [](const RowOutcome& r) { return r.row.measured; });
  d.output("predicted", &RowOutcome::predicted);
  d.output("error_pct", &RowOutcome::error_pct);
  d.computed("kind", [](const RowOutcome& r) { return r.row.kind; });
  d.computed("rule", [](const RowOutcome& r) { return r.row.rule; }).null_if_empty();
  d.computed("bound_pct", [](const RowOutcome& r) { return r.row.bound_pct; });
  d.computed("status", [](const RowOutcome& r) {
    if (!r.row.refused.empty()) return std::string("REFUSED");
    const auto met = r.met();
    return std::string(!met ? "REPORTED" : *met ? "MET" : "NOT MET");
  });
  d.output("known_gap_pct", &RowOutcome::known_gap_pct);
  d.output("null_predicted", &RowOutcome::null_predicted);
  d.output("null_error_pct", &RowOutcome::null_error_pct);
  d.computed("counted", [](const RowOutcome& r) { return r.row.counted; });
  d.computed("group", [](const RowOutcome& r) { return r.row.group; });
  d.computed("refused", [](const RowOutcome& r) { return r.row.refused; });
  d.computed("source", [](const RowOutcome& r) { return r.row.source; });
}

void MeanOutcome::describe(Outputs<MeanOutcome>& d) {
  d.output("name", &MeanOutcome::name);
  d.output("value", &MeanOutcome::value);
  d.output("bound", &MeanOutcome::bound);
  d.output("known_gap", &MeanOutcome::known);
  d.output("null_value", &MeanOutcome::null_value);
  d.output("rows", &MeanOutcome::rows);
}

void SuiteOutcome::describe(Outputs<SuiteOutcome>& d) {
  d.output("name", &SuiteOutcome::name);
  d.output("rows", &SuiteOutcome::rows);
  d.output("means", &SuiteOutcome::means);
  d.computed("mape_pct.fitted", [](const SuiteOutcome& s) { return s.mape_pct(RowKind::fitted); });
  d.computed("mape_pct.in_view", [](const SuiteOutcome& s) { return s.mape_pct(RowKind::in_view); });
  d.computed("mape_pct.predicted", [](const SuiteOutcome& s) { return s.mape_pct(RowKind::predicted); });
  d.output("errors", &SuiteOutcome::errors);
}

}  // namespace tw
