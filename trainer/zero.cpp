#include "trainer/zero.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "aten/weightless.h"
#include "oracle/plan/names.h"
#include "trainer/accumulation_hooks.h"
#include "trainer/gradient_arrivals.h"
#include "trainer/shard.h"
#include "trainer/shard_messages.h"
#include "trainer/unit_gathering.h"

namespace sibyl::trainer {
namespace {

std::int64_t largest_bucket(const GradientSync& sync) {  // bytes
  std::int64_t largest = 0;
  for (const Bucket& bucket : sync.buckets) largest = std::max(largest, bucket.bytes());
  return largest;
}

}  // namespace

class ShardedSync::Impl {
 public:
  Impl(Replica& replica, std::size_t index, Communicator& communicator, Communicator* copies, int replicas)
      : replica_(replica),
        stage_(replica.stage()),
        sync_(stage_.gradients[index]),
        copies_(copies),
        emulated_(replica.emulated()),
        memory_(emulated_ ? at::kMeta : at::kCPU),
        arrivals_(stage_),
        share_(at::scalar_tensor(1.0 / replicas, at::kFloat)),
        shards_(laid_out(communicator)),
        messages_(communicator, emulated_, largest_bucket(sync_)),
        units_(stage_, index, shards_, messages_, emulated_) {
    for (int i = 0; i < std::min<int>(sync_.buffers, static_cast<int>(shards_.size())); ++i)
      free_.push_back(new_room());
    buffer_bytes_ = static_cast<double>(free_.size()) * static_cast<double>(largest_bucket(sync_));
    for (Shard& shard : shards_) make_gradient(shard);
    add_hooks();
  }

  UnitGathering& units() { return units_; }
  const UnitGathering& units() const { return units_; }

  void begin(const std::vector<LocalTensorId>& complete, bool first) {
    first_ = first;
    for (Shard& shard : shards_) {
      std::fill(shard.filled.begin(), shard.filled.end(), false);
      std::fill(shard.waiting.begin(), shard.waiting.end(), false);
      shard.count = shard.sending = 0;
      shard.harvested = false;
    }
    next_ = 0;
    armed_ = true;
    if (!sync_.overlapped) return;
    const at::NoGradGuard no_grad;
    for (const LocalTensorId id : complete)
      if (const auto place = place_of_.find(id); place != place_of_.end())
        take(place->second.first, place->second.second);
    send_ready();
  }

  void pack() {
    const at::NoGradGuard no_grad;
    armed_ = false;
    for (Shard& shard : shards_) {
      for (std::size_t i = 0; i < shard.filled.size(); ++i)
        if (!shard.filled[i]) fill(shard, i);
      send_ready();
    }
  }

  void finish() {
    send_ready();
    messages_.wait();
    for (Shard& shard : shards_) harvest(shard);
  }

  void record(Recorder* recorder) {
    messages_.record(recorder);
    units_.record(recorder);
  }

  std::vector<Part> parts() const {
    std::vector<Part> result;
    for (const Shard& shard : shards_)
      result.push_back({shard.bucket, shard.range, shard.own, shard.gradient, shard.home});
    return result;
  }

  void gather_updated() {
    for (const Shard& shard : shards_)
      if (!shard.unit)
        messages_.begin(Collective::all_gather, messages_.of(shard.flat, shard.bucket->elements), "all-gather");
    messages_.wait();
  }

  void begin_backward(Turn::Kind kind) {
    arrivals_.begin(kind);
    for (Shard& shard : shards_) shard.arrived = 0;
    units_.begin_backward();
  }

  Bytes weights() const {
    double bytes = 0;
    for (const Shard& shard : shards_)
      if (!shard.unit || !units_.lie_outside())
        bytes += static_cast<double>(((shard.unit ? shard.own : shard.flat).nbytes() + 63) / 64 * 64);
    return Bytes{bytes};
  }
  Bytes communication() const { return Bytes{buffer_bytes_}; }

 private:
  at::Tensor made(std::int64_t elements, c10::ScalarType type) const {
    return at::empty({elements}, memory_.dtype(type));
  }

  std::vector<Shard> laid_out(const Communicator& communicator) {
    std::vector<Shard> shards(sync_.buckets.size());
    for (std::size_t b = 0; b < shards.size(); ++b) lay_out(b, communicator, shards[b]);
    return shards;
  }

  void lay_out(std::size_t index, const Communicator& communicator, Shard& shard) {
    const at::NoGradGuard no_grad;
    shard.bucket = &sync_.buckets[index];
    shard.range = part_of(*shard.bucket, communicator.size(), communicator.rank());
    shard.flat = made(shard.bucket->elements, shard.type());
    std::int64_t at = 0;
    for (const LocalTensorId id : shard.bucket->parameters) {
      at::Tensor& parameter = replica_[id];
      const at::Tensor view = shard.flat.narrow(0, at, parameter.numel()).view(parameter.sizes());
      view.copy_(parameter);
      parameter.set_data(view);
      place_of_[id] = {index, shard.place.size()};
      shard.place.push_back(at);
      at += view.numel();
    }
    shard.filled.assign(shard.place.size(), false);
    shard.waiting = shard.filled;
    shard.own = shard.flat.narrow(0, shard.range.begin, shard.range.size());
  }

  void make_gradient(Shard& shard) {
    if (sync_.buffers > 0) {
      shard.gradient = made(shard.range.size(), shard.gradient_type());
      return;
    }
    shard.buffer = made(shard.bucket->elements, shard.gradient_type());
    shard.gradient = shard.buffer.narrow(0, shard.range.begin, shard.range.size());
    if (gradients_lie_in(shard))
      aten::resize_weightless(shard.buffer, 0);
    else
      buffer_bytes_ += static_cast<double>(shard.bucket->bytes());
  }
  // Gradients of two-byte weights lie in their bucket, if it is theirs alone; those of an emulated device are counted
  // as the parameters'.
  [[nodiscard]] bool gradients_lie_in(const Shard& shard) const {
    return emulated_ != nullptr && sync_.buffers == 0 && size_in_bytes(shard.bucket->dtype) == 2;
  }

  void add_hooks() {
    for (const auto& [id, place] : place_of_)
      if (replica_[id].requires_grad())
        hooks_.add(replica_[id], [this, shard = place.first, slot = place.second] { gradient_ready(shard, slot); });
  }

  void gradient_ready(std::size_t index, std::size_t slot) {
    Shard& shard = shards_[index];
    if (!arrivals_.last(shard.bucket->parameters[slot])) return;
    const at::NoGradGuard no_grad;
    const bool complete = ++shard.arrived == shard.place.size(), sends = armed_ && sync_.overlapped;
    if (sends) take(index, slot);
    if (complete) units_.about_to_send(shard);
    if (sends) send_ready();
    if (!complete) return;
    shard.arrived = 0;
    units_.read_no_more(shard);
  }

  // A finished gradient goes to its buffer, unless that would be the last one and the bucket to be sent next has none:
  // gradients that are not put off are finished before all those that are.
  void take(std::size_t index, std::size_t slot) {
    Shard& shard = shards_[index];
    if (index == next_ || shard.buffer.defined() || room_beside_next())
      fill(shard, slot);
    else
      shard.waiting[slot] = true;
  }
  [[nodiscard]] bool room_beside_next() const {
    const auto on_their_way = std::ranges::count_if(
        shards_, [](const Shard& shard) { return shard.sending > 0 && !shard.harvested && shard.room.defined(); });
    const std::size_t wanted = next_ < shards_.size() && !shards_[next_].buffer.defined() ? 2 : 1;
    return free_.size() + static_cast<std::size_t>(on_their_way) >= wanted;
  }

  void fill(Shard& shard, std::size_t slot) {
    shard.waiting[slot] = false;
    if (!shard.buffer.defined()) {
      shard.room = claim();
      shard.buffer = shard.room.narrow(0, 0, shard.bucket->bytes()).view(shard.gradient_type());
    }
    at::Tensor& parameter = replica_[shard.bucket->parameters[slot]];
    at::Tensor& gradient = parameter.mutable_grad();
    const std::int64_t elements = element_count(stage_[shard.bucket->parameters[slot]].shape);
    at::Tensor place = shard.buffer.narrow(0, shard.place[slot], elements);
    if (gradient.defined() && !gradient.is_meta())
      at::mul_out(place, gradient.reshape({-1}), share_);
    else
      place.zero_();
    if (!gradients_lie_in(shard)) gradient.reset();
    shard.filled[slot] = true;
    ++shard.count;
  }

  // A buffer that is free, or the first that will be; if all are still being filled, a further one.
  at::Tensor claim() {
    if (free_.empty()) {
      const auto oldest = std::find_if(shards_.begin(), shards_.end(),
                                       [](const Shard& shard) { return shard.sending > 0 && !shard.harvested; });
      if (oldest == shards_.end()) return new_room();
      messages_.wait(oldest->sending);
      harvest(*oldest);
    }
    at::Tensor room = std::move(free_.back());
    free_.pop_back();
    return room;
  }
  at::Tensor new_room() const { return at::empty({largest_bucket(sync_)}, memory_.dtype(at::kByte)); }

  void harvest(Shard& shard) {
    if (shard.harvested || sync_.buffers == 0) return;
    const at::NoGradGuard no_grad;
    const at::Tensor part = shard.buffer.narrow(0, shard.range.begin, shard.range.size());
    if (first_)
      shard.gradient.copy_(part);
    else
      shard.gradient.add_(part);
    free_.push_back(std::move(shard.room));
    shard.buffer = shard.room = at::Tensor();
    shard.harvested = true;
  }

  // In order: all ranks must hand the same bucket to the same collective.
  void send_ready() {
    for (; next_ < shards_.size(); ++next_) {
      Shard& shard = shards_[next_];
      for (std::size_t i = 0; i < shard.waiting.size(); ++i)
        if (shard.waiting[i]) fill(shard, i);
      if (shard.count < shard.place.size()) return;
      const Elements all = messages_.of(shard.buffer, shard.bucket->elements);
      shard.sending = messages_.begin(Collective::reduce_scatter, all, bucket_name(next_, "reduce-scatter"));
      if (copies_ == nullptr) continue;
      const auto begin = static_cast<std::size_t>(shard.range.begin),
                 size = static_cast<std::size_t>(shard.range.size());
      shard.sending = messages_.begin(Collective::all_reduce, all.part(begin, size), bucket_name(next_), copies_);
    }
  }

  Replica& replica_;
  const Stage& stage_;
  const GradientSync& sync_;
  Communicator* copies_;      // of those that hold the same part; none: this one alone
  EmulatedDevice* emulated_;  // none: this machine itself
  at::TensorOptions memory_;  // its
  GradientArrivals arrivals_;
  at::Tensor share_;
  std::unordered_map<LocalTensorId, std::pair<std::size_t, std::size_t>> place_of_;
  std::vector<Shard> shards_;  // by bucket
  ShardMessages messages_;
  std::vector<at::Tensor> free_;  // bytes for buffers
  double buffer_bytes_ = 0;
  std::size_t next_ = 0;  // bucket to send
  bool armed_ = false;
  bool first_ = true;  // to be reduced in this step
  UnitGathering units_;
  AccumulationHooks hooks_;
};

ShardedSync::ShardedSync(Replica& replica, std::size_t index, Communicator& communicator, Communicator* copies,
                         int replicas)
    : impl_(std::make_unique<Impl>(replica, index, communicator, copies, replicas)) {}
ShardedSync::~ShardedSync() = default;
Result<void> ShardedSync::move_out(const std::filesystem::path& folder) { return impl_->units().move_out(folder); }
OffloadedBytes ShardedSync::moved() const { return impl_->units().moved(); }
void ShardedSync::begin(const std::vector<LocalTensorId>& complete, bool first) { impl_->begin(complete, first); }
void ShardedSync::pack() { impl_->pack(); }
void ShardedSync::finish() { impl_->finish(); }
void ShardedSync::record(Recorder* recorder) { impl_->record(recorder); }
std::vector<ShardedSync::Part> ShardedSync::parts() const { return impl_->parts(); }
void ShardedSync::gather_updated() { impl_->gather_updated(); }
void ShardedSync::begin_backward(Turn::Kind kind) { impl_->begin_backward(kind); }
void ShardedSync::before_forward(std::size_t step) { impl_->units().before_forward(step); }
void ShardedSync::after_forward(std::size_t step) { impl_->units().after_forward(step); }
void ShardedSync::before_backward(std::size_t step) { impl_->units().before_backward(step); }
void ShardedSync::after_backward(std::size_t first) { impl_->units().after_backward(first); }
void ShardedSync::gather_all() { impl_->units().gather_all(); }
void ShardedSync::release_all() { impl_->units().release_all(); }
Bytes ShardedSync::weights() const { return impl_->weights(); }
Bytes ShardedSync::communication() const { return impl_->communication(); }

}  // namespace sibyl::trainer
