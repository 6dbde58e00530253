#include "hardware/precision.hpp"

#include "core/codec.hpp"
#include "core/text.hpp"

namespace tw {
namespace {

constexpr const Precision* kField[] = {&Precision::fp32, &Precision::bf16, &Precision::fp8, &Precision::mxfp8,
                                       &Precision::nvfp4};

}  // namespace

std::vector<std::string> field_precisions() {
  std::vector<std::string> names;
  for (const Precision* p : kField) names.push_back(p->name());
  return names;
}

const Precision* field_precision(std::string_view name) {
  for (const Precision* p : kField)
    if (name == p->letters.data()) return p;
  return nullptr;
}

TypeInfo Codec<Precision>::type() {
  return {TypeInfo::Kind::text, nullptr, field_precisions(), nullptr, nullptr};
}

void Codec<Precision>::read(Precision& out, const nlohmann::json& j, const ReadContext& c) {
  std::string name;
  if (!detail::read_text(name, j, c)) return;
  const Precision* const known = field_precision(name);
  out = known != nullptr ? *known : Precision{precision_letters(name)};
  if (out.name() != name)
    c.fault("unknown choice \"" + printable(name) + "\"", "allowed: " + one_of(field_precisions()) +
                                                              ", or a name of at most 15 letters that the accelerator "
                                                              "gives a precision of its own");
}

std::string Codec<Precision>::default_text(const Precision& v) {
  return detail::json_text(v.name());
}

void PrecisionFormat::describe(Description<PrecisionFormat>& d) {
  d.object("precision", "A number format of matrix products beside fp32, bf16, fp8, mxfp8 and nvfp4.");
  d.required("operand_bytes", &PrecisionFormat::operand_bytes, "bytes of one element, scales of blocks included",
             between(0.01, 16));
  d.optional("like", &PrecisionFormat::like,
             "whose kernels, as a share of the peak, stand in for those that the profile does not have: one of those "
             "five");
  d.optional("peak_share", &PrecisionFormat::peak_share,
             "share of its peak that stands in where \"peaks\" does not name this one; 0: nothing does",
             between(0, 64));
  d.optional("scaled", &PrecisionFormat::scaled, "operands are cast and scaled for each product, as FP8's are");
  d.optional("seeks_largest", &PrecisionFormat::seeks_largest,
             "a scale is the whole tensor's: a kernel of its own seeks the largest element before the cast");
}

}  // namespace tw
