#include "models/operations/operations.h"

namespace sibyl {

std::string_view name_of(const Attributes& attributes) {
  return std::visit([](const auto& a) { return std::decay_t<decltype(a)>::name; }, attributes);
}

std::optional<std::size_t> index_into(const Attributes& attributes, std::size_t operand) {
  return std::visit(
      [&](const auto& op) -> std::optional<std::size_t> {
        if constexpr (requires { op.index_into(operand); }) return op.index_into(operand);
        return std::nullopt;
      },
      attributes);
}

namespace {

template <class... Kinds>
std::vector<std::string_view> names_of(const std::variant<Kinds...>*) {
  return {Kinds::name...};
}

}  // namespace

std::vector<std::string_view> operation_names() { return names_of(static_cast<const Attributes*>(nullptr)); }

}  // namespace sibyl
