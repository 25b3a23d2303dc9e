#include "trainer/weights_file.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "aten/device.h"
#include "trainer/tensor_bytes.h"

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
  int stage = 0;
  LocalTensorId id;
  std::string name;
};

// A tensor may be held in several layouts, or by several stages: the first is saved.
std::vector<Entry> entries_of(const Graph& graph, const Plan& plan) {
  std::vector<Entry> entries;
  std::set<TensorId> known;
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (const TensorKind kind : {TensorKind::parameter, TensorKind::buffer})
      for (std::size_t t = 0; t < plan.stages[s].tensors.size(); ++t) {
        const LocalTensor& local = plan.stages[s].tensors[t];
        if (local.kind == kind && known.insert(local.origin).second)
          entries.push_back({static_cast<int>(s), LocalTensorId{t}, graph[local.origin].name});
      }
  return entries;
}

const LocalTensor& local_of(const Plan& plan, const Entry& entry) {
  return plan.stages[static_cast<std::size_t>(entry.stage)][entry.id];
}

std::string header_of(const Session& session, const std::vector<Entry>& entries) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t at = 0;
  for (const Entry& entry : entries) {
    const LocalTensor& local = local_of(session.plan(), entry);
    const Shape shape = session.groups().whole_shape(local);
    const std::size_t end =
        at + static_cast<std::size_t>(element_count(shape)) * c10::elementSize(aten::scalar_type(local.dtype));
    header[entry.name] = {{"dtype", type_name(local.dtype)}, {"shape", shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins aligned
  return text;
}

// Put together where it is held, and brought to the first pipeline coordinate.
at::Tensor whole(const Session& session, const Entry& entry) {
  const MeshGroups& groups = session.groups();
  const LocalTensor& local = local_of(session.plan(), entry);
  at::Tensor tensor;
  if (StageWorker* worker = session.worker(entry.stage); worker != nullptr)
    tensor = aten::to_host(groups.whole(worker->replica()[entry.id].detach(), local).contiguous());
  const int holder = entry.stage % groups.size(MeshAxis::pipeline);
  if (holder == 0) return tensor;
  Communicator& pipeline = groups.axis(MeshAxis::pipeline);
  if (tensor.defined()) pipeline.send(bytes_of(tensor), 0);
  if (pipeline.rank() != 0) return {};
  LocalTensor all = local;
  all.shape = groups.whole_shape(local);
  tensor = room_for(all);
  pipeline.receive(bytes_of(tensor), holder);
  return tensor;
}

}  // namespace

Result<void> save_weights(const Session& session, const std::filesystem::path& path) {
  const bool writes = session.groups().rank() == 0;
  const std::vector<Entry> entries = entries_of(session.graph(), session.plan());
  std::ofstream file;
  if (writes) {
    const std::string header = header_of(session, entries);
    file.open(path, std::ios::binary | std::ios::trunc);
    const std::uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << header;
  }
  for (const Entry& entry : entries) {
    const at::Tensor tensor = whole(session, entry);
    if (writes) file.write(static_cast<const char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  }
  if (!writes) return {};
  file.close();
  if (!file) return fail("cannot write the weights", path.string());
  return {};
}

}  // namespace sibyl::trainer
