// A rule from a signature's text, as calibration files write it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "models/training/training.h"

namespace sibyl::test {

inline TrainingRule rule_of(const std::string& text, std::uint32_t gradients = 0, Backend backend = Backend::cpu) {
  const auto signature = parse_signature(text);
  EXPECT_TRUE(signature) << to_string(signature.error());
  return signature ? training_rule(*signature, gradients, backend) : TrainingRule{};
}

// Masks by the operands whose gradients are computed.
inline constexpr std::uint32_t first = 1, second = 2, third = 4;

}  // namespace sibyl::test
