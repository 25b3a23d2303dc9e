// Where splitting ends when the user says so (Strategy::split_until): of an image that has become small, or of layers
// with few filters, the parts cost more to put together than they save (ParaDL's split point).
#pragma once

#include <string_view>

#include "oracle/plan/plan.h"
#include "oracle/plan/sharding/policy.h"

namespace sibyl {

// Does who says `name` mean this operation: by its whole name, or by the beginning of one that goes on behind one of
// "/._:" ("layer3" means "layer3.0.conv1")?
bool is_meant(std::string_view operation, std::string_view name);

// Axes that split layer by layer may end anywhere: filter, channel and those of images. What lies between the weights
// of tensor ranks, tokens and experts are split throughout.
bool ends_anywhere(const Policy& policy);

// Of the operations that are meant the one that `whole` runs last; invalid where the strategy says nothing. Fails, code
// usage, where there is none, or no axis of the strategy ends anywhere.
Result<OperationId> split_point(const Graph& graph, const Stage& whole, const Strategy& strategy);

}  // namespace sibyl
