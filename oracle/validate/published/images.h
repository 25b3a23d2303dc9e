// The extents of images that a row states, against those a network was built for.
#pragma once

#include <string>

#include "base/result.h"
#include "models/graph.h"
#include "models/shape.h"

namespace sibyl::published {

// "3x224x224" -> {3, 224, 224}, "224" -> {224}. Empty where the text is none of the kind.
Ints stated_extents(const std::string& text);

// Of the graph's first input that is an image, [batch, channels, extents...]; empty where there is none.
Shape image_shape(const Graph& graph);

// What the stated extents make of an image's shape: one extent is every axis's; as many as axes are each its own, with
// channels before them or without. An Error where they are of other axes or channels. {224} of [8, 3, 299, 299] is
// {224, 224}.
Result<Ints> image_extents(const Ints& stated, const Shape& image);

}  // namespace sibyl::published
