// What differs between the versions of libtorch that Sibyl builds with, 1.13 to 2.x, in one place.
#pragma once

#include <torch/types.h>
#include <torch/version.h>

#define SIBYL_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace sibyl::aten {

// Since 2.3 ATen's optional values are the standard library's, and later versions drop the names of their own.
#if SIBYL_TORCH_AT_LEAST(2, 3)
template <class T>
using Optional = std::optional<T>;
inline constexpr std::nullopt_t nothing = std::nullopt;
#else
template <class T>
using Optional = c10::optional<T>;
inline constexpr c10::nullopt_t nothing = c10::nullopt;
#endif

}  // namespace sibyl::aten
