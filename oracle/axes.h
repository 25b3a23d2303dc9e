// The axes of parallelism, as those who go through all of them want them. The axes themselves: axes.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oracle/strategy.h"

namespace sibyl {

// A strategy's degree, to be set.
int& degree_of(Strategy& strategy, MeshAxis axis);

// What users say of axes, nearest first: each by its name, tensor by "sequence", too, and those of images together as
// "spatial". `degree` follows a name, `extents` "spatial": "tensor=N, …, spatial=HxW" of "=N" and "=HxW".
std::vector<std::string_view> axis_words();
std::string axis_choices(std::string_view degree, std::string_view extents);
// The axes that one of these words means. Empty: it is none.
std::vector<MeshAxis> axes_said(std::string_view word);

// Nearest first, as is usual. Those that make_program() splits a replica along: all but replicas and stages.
std::vector<MeshAxis> axes_of_a_program();
// Of these the ones whose ranks have their samples in common, and share what is done with them.
std::vector<MeshAxis> axes_within_samples();
bool is_of_images(MeshAxis axis);
// Its ranks each have samples of their own: replicas, and where layers of a replica are dealt out among such ranks.
bool has_own_samples(MeshAxis axis);

}  // namespace sibyl
