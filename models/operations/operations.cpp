#include "models/operations/operations.h"

namespace sibyl {

std::string_view name_of(const Attributes& attributes) {
  return std::visit([](const auto& a) { return std::decay_t<decltype(a)>::name; }, attributes);
}

}  // namespace sibyl
