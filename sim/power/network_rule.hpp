// Named rules that apportion switch power to a job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw {

enum class NetworkRule { as_published, as_stated, whole_switches, by_load };
template <>
struct Choices<NetworkRule> {
  static std::vector<std::pair<std::string, NetworkRule>> table() {
    return {{"as_published", NetworkRule::as_published},
            {"as_stated", NetworkRule::as_stated},
            {"whole_switches", NetworkRule::whole_switches},
            {"by_load", NetworkRule::by_load}};
  }
};

}  // namespace tw
