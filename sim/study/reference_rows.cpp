#include "study/reference_rows.hpp"

#include "study/validate.hpp"

namespace tw {

void fill_reference(Result& result, const Reference& reference) {
  result.reference.source = reference.source;
  for (const Measured& m : reference.rows) {
    ReferenceRow row{m.quantity, m.unit, m.kind, m.value, result_quantity(result, m.quantity), {}};
    row.error_pct = error_pct(row.predicted, m.value);
    result.reference.rows.push_back(std::move(row));
  }
}

}  // namespace tw
