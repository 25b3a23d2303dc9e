#include "trainer/weights_file.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace sibyl::trainer {
namespace {

std::string type_name(DType type) {
  static const std::map<DType, std::string> names = {{DType::f64, "F64"}, {DType::f32, "F32"},     {DType::tf32, "F32"},
                                                     {DType::f16, "F16"}, {DType::bf16, "BF16"},   {DType::i64, "I64"},
                                                     {DType::i32, "I32"}, {DType::i16, "I16"},     {DType::i8, "I8"},
                                                     {DType::u8, "U8"},   {DType::boolean, "BOOL"}};
  return names.at(type);
}

struct Entry {
  LocalTensorId id;
  std::string name;
};

// A buffer may be held in several layouts: the first is saved.
std::vector<Entry> entries_of(Replica& replica) {
  std::vector<LocalTensorId> all = replica.parameters();
  all.insert(all.end(), replica.buffers().begin(), replica.buffers().end());
  std::vector<Entry> entries;
  std::set<TensorId> known;
  for (const LocalTensorId id : all)
    if (const TensorId origin = replica.stage()[id].origin; known.insert(origin).second)
      entries.push_back({id, replica.graph()[origin].name});
  return entries;
}

std::string header_of(Replica& replica, const std::vector<Entry>& entries) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t at = 0;
  for (const Entry& entry : entries) {
    const LocalTensor& local = replica.stage()[entry.id];
    const Shape shape = replica.groups().whole_shape(local);
    const std::size_t end = at + static_cast<std::size_t>(element_count(shape)) * replica[entry.id].itemsize();
    header[entry.name] = {{"dtype", type_name(local.dtype)}, {"shape", shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins aligned
  return text;
}

}  // namespace

Result<void> save_weights(Replica& replica, const std::filesystem::path& path) {
  const bool writes = replica.groups().rank() == 0;
  const std::vector<Entry> entries = entries_of(replica);
  std::ofstream file;
  if (writes) {
    const std::string header = header_of(replica, entries);
    file.open(path, std::ios::binary | std::ios::trunc);
    const std::uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << header;
  }
  for (const Entry& entry : entries) {
    const at::Tensor whole = replica.groups().whole(replica[entry.id].detach(), replica.stage()[entry.id]).contiguous();
    if (writes) file.write(static_cast<const char*>(whole.data_ptr()), static_cast<std::streamsize>(whole.nbytes()));
  }
  if (!writes) return {};
  file.close();
  if (!file) return fail("cannot write the weights", path.string());
  return {};
}

}  // namespace sibyl::trainer
