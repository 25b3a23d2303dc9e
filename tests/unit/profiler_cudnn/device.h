// Tests that need a GPU say so and skip where there is none.
#pragma once

#include <gtest/gtest.h>

#include "profiler/cudnn/gpu.h"

#define SIBYL_NEEDS_A_GPU() \
  if (const auto opened = sibyl::cudnn::Gpu::open({}); !opened) GTEST_SKIP() << opened.error().message
