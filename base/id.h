// Typed ids: an index into one table cannot be used for another.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sibyl {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  // invalid
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  [[nodiscard]] constexpr bool valid() const { return index_ != UINT32_MAX; }
  [[nodiscard]] constexpr std::size_t index() const { return index_; }

  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::uint32_t index_ = UINT32_MAX;
};

}  // namespace sibyl

template <class Tag>
struct std::hash<sibyl::Id<Tag>> {
  std::size_t operator()(sibyl::Id<Tag> id) const noexcept { return id.index(); }
};
