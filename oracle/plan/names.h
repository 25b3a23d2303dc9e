// What the parts of a step are called, wherever they are shown: predicted and measured timelines use the same names.
#pragma once

#include <string>
#include <string_view>

#include "models/graph.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Streams of one rank.
inline constexpr std::string_view compute_track = "compute";
inline constexpr std::string_view communication_track = "communication";
inline constexpr std::string_view turns_track = "turns";  // of a pipeline
inline constexpr std::string_view sends_track = "sends";  // to neighbours in it
inline constexpr std::string_view copies_track = "copies";  // of state that lies outside the device
inline constexpr std::string_view host_track = "host";    // what the device waits for: launches, data, other ranks

std::string_view to_string(Turn::Kind kind);                                         // "forward"
std::string pass_name(const Graph& graph, const Compute& compute, Turn::Kind kind);  // "conv1 forward"
// The same of any step: "all-reduce conv1 forward".
std::string pass_name(const Graph& graph, const Stage& stage, const Step& step, Turn::Kind kind);
std::string turn_name(const Turn& turn);  // "forward 3 of stage 1"
std::string send_name(const Turn& turn);  // of what the turn ends with: "send forward 3 of stage 1"
std::string bucket_name(std::size_t index, std::string_view exchange = "all-reduce");  // "all-reduce bucket 0"
std::string unit_name(std::size_t index);                            // "all-gather unit 0"
std::string unit_copy_name(std::size_t index);                       // "copy part of unit 0"
std::string copy_name(const OffloadCopy& copy);                      // "read state 0", "write state 0"
std::string part_name(std::size_t unit);                             // "read part of unit 0"
std::string kept_name(std::size_t segment, OffloadCopy::Way way);    // "read kept 0", "write kept 0"
inline constexpr std::string_view shared_parameters_name = "all-reduce shared parameters";  // of several stages
inline constexpr std::string_view gradients_name = "exchange gradients";  // all that are after the last turn
inline constexpr std::string_view gather_name = "gather what was updated";
inline constexpr std::string_view part_sums_name = "add up parts of gradients";  // of two micro-batches
// From buckets, once all are reduced; before that out of the form in which they came.
inline constexpr std::string_view copies_back_name = "copy gradients back";
inline constexpr std::string_view optimizer_name = "optimizer";

}  // namespace sibyl
