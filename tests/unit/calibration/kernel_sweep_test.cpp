// What `compute` times without --for.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "calibration/program/wanted.h"
#include "models/operations/operations.h"

namespace sibyl {
namespace {

TEST(KernelSweep, HasEachKernelOnce) {
  for (const SweepSize size : {SweepSize::quick, SweepSize::full}) {
    std::set<std::string> seen;
    for (const KernelKey& key : sweep(size, {OptimizerKind::sgd}))
      EXPECT_TRUE(seen.insert(to_string(key)).second) << to_string(key);
  }
}

// A whole is as many parts as there are ranks; what is exchanged both ways keeps its size; a halo is rows of the own.
TEST(KernelSweep, WhatRanksCopyFitsTogether) {
  int parts = 0, halos = 0;
  for (const SweepSize size : {SweepSize::quick, SweepSize::full})
    for (const KernelKey& key : sweep(size, {})) {
      const std::int64_t in = element_count(key.signature.inputs.front());
      if (const auto* packing = std::get_if<Packing>(&key.signature.attributes)) {
        const std::int64_t out = element_count(key.signature.outputs.front());
        const bool both = packing->apart != Packing::none && packing->together != Packing::none;
        const std::int64_t wanted = both                              ? in
                                    : packing->apart != Packing::none ? in / packing->ways
                                                                      : in * packing->ways;
        EXPECT_EQ(out, wanted) << to_string(key);
        ++parts;
      }
      if (const auto* halo = std::get_if<HaloPacking>(&key.signature.attributes)) {
        const Shape &from = key.signature.inputs.front(), &to = key.signature.outputs.front();
        EXPECT_EQ(halo->sums ? from[1] - to[1] : to[1] - from[1], halo->before + halo->after) << to_string(key);
        ++halos;
      }
    }
  EXPECT_GT(parts, 20);
  EXPECT_GT(halos, 20);
}

}  // namespace
}  // namespace sibyl
