// A kernel's key from its text, in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "profiler/kernel_key.h"

namespace sibyl::test {

inline KernelKey key(const std::string& text) {
  auto parsed = parse_kernel_key(text);
  EXPECT_TRUE(parsed) << to_string(parsed.error());
  return parsed.value_or(KernelKey{});
}

}  // namespace sibyl::test
