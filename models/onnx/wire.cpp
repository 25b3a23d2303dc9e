#include "models/onnx/wire.h"

#include <cstdint>

#include "models/onnx/fact.h"

namespace sibyl::onnx_import {
namespace {

// The messages on the way from a model to its tensors. Field numbers are those of onnx.proto.
enum class Message { model, graph, node, attribute, tensor, sparse_tensor, function, other };

Message child(Message parent, std::uint64_t field) {
  switch (parent) {
    case Message::model: return field == 7 ? Message::graph : field == 25 ? Message::function : Message::other;
    case Message::graph:
      return field == 1    ? Message::node
             : field == 5  ? Message::tensor
             : field == 15 ? Message::sparse_tensor
                           : Message::other;
    case Message::node: return field == 5 ? Message::attribute : Message::other;
    case Message::attribute:
      return field == 5 || field == 10    ? Message::tensor
             : field == 6 || field == 11  ? Message::graph
             : field == 22 || field == 23 ? Message::sparse_tensor
                                          : Message::other;
    case Message::sparse_tensor: return field == 1 || field == 2 ? Message::tensor : Message::other;
    case Message::function: return field == 7 ? Message::node : Message::other;
    case Message::tensor:
    case Message::other: return Message::other;
  }
  return Message::other;
}

bool is_payload(std::uint64_t field) {
  constexpr std::uint64_t float_data = 4, int32_data = 5, int64_data = 7, raw_data = 9, double_data = 10,
                          uint64_data = 11;
  return field == float_data || field == int32_data || field == int64_data || field == raw_data ||
         field == double_data || field == uint64_data;
}

constexpr std::size_t largest_kept_payload = static_cast<std::size_t>(max_known_values) * 10;  // a varint: 10 bytes
constexpr int deepest = 64;

std::optional<std::uint64_t> take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7Fu) << shift;
    if (byte < 0x80u) return value;
  }
  return std::nullopt;
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80u; value >>= 7) out.push_back(static_cast<char>(value | 0x80u));
  out.push_back(static_cast<char>(value));
}

// Name and raw_data of a tensor.
struct NamedPayload {
  std::string_view name, raw_data;
};

bool copy(Message message, std::string_view in, std::string& out, int depth, Payloads* payloads,
          const Cancelled& cancelled) {
  constexpr std::uint64_t tensor_name = 8, raw_data = 9;
  constexpr int depth_of_initializers = 2;
  if (depth > deepest) return false;
  NamedPayload tensor;
  while (!in.empty()) {
    const std::string_view start = in;
    const auto tag = take_varint(in);
    if (!tag || *tag >> 3 == 0) return false;
    const std::uint64_t field = *tag >> 3;
    std::size_t length = 0;
    switch (*tag & 7u) {
      case 0:
        if (!take_varint(in)) return false;
        break;
      case 1: length = 8; break;
      case 5: length = 4; break;
      case 2: {
        const auto size = take_varint(in);
        if (!size || *size > in.size()) return false;
        const std::string_view body = in.substr(0, *size);
        in.remove_prefix(*size);
        const Message kind = child(message, field);
        if (message == Message::tensor && field == tensor_name) tensor.name = body;
        if (message == Message::tensor && field == raw_data) tensor.raw_data = body;
        if (message == Message::tensor && is_payload(field) && body.size() > largest_kept_payload) continue;
        if (kind == Message::other) {
          out.append(start.data(), start.size() - in.size());
          continue;
        }
        std::string nested;
        if (is_true(cancelled) || !copy(kind, body, nested, depth + 1, payloads, cancelled)) return false;
        put_varint(out, *tag);
        put_varint(out, nested.size());
        out += nested;
        continue;
      }
      default: return false;  // groups: not in ONNX
    }
    if (length > in.size()) return false;
    in.remove_prefix(length);
    out.append(start.data(), start.size() - in.size());
  }
  if (payloads && message == Message::tensor && depth == depth_of_initializers && !tensor.raw_data.empty())
    payloads->emplace(tensor.name, tensor.raw_data);
  return true;
}

}  // namespace

std::optional<std::string> without_payloads(std::string_view model, Payloads* payloads, const Cancelled& cancelled) {
  std::string out;
  if (!copy(Message::model, model, out, 0, payloads, cancelled)) return std::nullopt;
  return out;
}

}  // namespace sibyl::onnx_import
