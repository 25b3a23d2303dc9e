#include "trainer/weights_file.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace sibyl::trainer {
namespace {

std::string type_name(DType type) {
  static const std::map<DType, std::string> names = {{DType::f64, "F64"}, {DType::f32, "F32"},     {DType::tf32, "F32"},
                                                     {DType::f16, "F16"}, {DType::bf16, "BF16"},   {DType::i64, "I64"},
                                                     {DType::i32, "I32"}, {DType::i16, "I16"},     {DType::i8, "I8"},
                                                     {DType::u8, "U8"},   {DType::boolean, "BOOL"}};
  return names.at(type);
}

}  // namespace

Result<void> save_weights(Replica& replica, const std::filesystem::path& path) {
  std::vector<LocalTensorId> saved = replica.parameters();
  saved.insert(saved.end(), replica.buffers().begin(), replica.buffers().end());
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t at = 0;
  for (const LocalTensorId id : saved) {
    const LocalTensor& local = replica.stage()[id];
    const std::size_t end = at + replica[id].nbytes();
    header[replica.graph()[local.origin].name] = {
        {"dtype", type_name(local.dtype)}, {"shape", local.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins aligned
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const std::uint64_t length = text.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << text;
  for (const LocalTensorId id : saved) {
    const at::Tensor tensor = replica[id].detach().contiguous();
    file.write(static_cast<const char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  }
  file.close();
  if (!file) return fail("cannot write the weights", path.string());
  return {};
}

}  // namespace sibyl::trainer
