// Money: amounts are never converted, so each currency is a unit of its own.
#pragma once

#include <string_view>

namespace tw {

// Is this a currency of ISO 4217, such as "EUR"?
bool is_currency(std::string_view code);

}  // namespace tw
