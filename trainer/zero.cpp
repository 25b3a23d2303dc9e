#include "trainer/zero.h"

#include <ATen/native/Resize.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "aten/dtype.h"
#include "aten/memory.h"
#include "aten/weightless.h"
#include "oracle/plan/names.h"
#include "trainer/accumulation_hooks.h"
#include "trainer/communication_thread.h"
#include "trainer/copy_thread.h"
#include "trainer/emulated_device.h"
#include "trainer/gradient_arrivals.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {
namespace {

struct Shard {
  const Bucket* bucket = nullptr;
  BucketPart range;
  at::Tensor flat, own;  // parameters; the rank's part, of the flat tensor or apart from it
  const ParameterUnit* unit = nullptr;
  std::size_t unit_index = 0;
  bool gathered = true;
  std::size_t gathering = 0;        // number of the gathering to wait for
  OutsidePlace home;                // of `own`, which is then here only on its way
  std::size_t bringing = 0;         // number of the copy to wait for; 0: not on its way
  at::Tensor buffer, gradient;      // of gradients, and the rank's part of them
  at::Tensor room;                  // that the buffer lies in, where it is one of those that go round
  std::vector<std::int64_t> place;  // of each parameter
  std::vector<bool> filled, waiting;  // of these; finished, while all buffers are of buckets before
  std::size_t count = 0;    // filled
  std::size_t arrived = 0;  // of these, in this backward
  bool over = false;        // all of them have: nobody reads the parameters any more
  std::size_t sending = 0;  // number of the reduce-scatter; 0: not sent
  bool harvested = false;
};

}  // namespace

class ShardedSync::Impl {
 public:
  Impl(Replica& replica, std::size_t index, Communicator& communicator, Communicator* copies, int replicas)
      : replica_(replica),
        stage_(replica.stage()),
        sync_(stage_.gradients[index]),
        communicator_(communicator),
        copies_(copies),
        emulated_(replica.emulated()),
        memory_(emulated_ ? at::kMeta : at::kCPU),
        splits_(splits_backward(stage_)),
        arrivals_(stage_),
        thread_(communicator),
        share_(at::scalar_tensor(1.0 / replicas, at::kFloat)) {
    shards_.resize(sync_.buckets.size());
    if (emulated_) make_wire();
    for (std::size_t b = 0; b < shards_.size(); ++b) lay_out(b);
    for (std::size_t u = 0; u < stage_.units.size(); ++u)
      if (stage_.units[u].sync == index) units_.push_back(stage_.units[u].bucket), own_unit(u);
    for (int i = 0; i < std::min<int>(sync_.buffers, static_cast<int>(shards_.size())); ++i)
      free_.push_back(new_room());
    buffer_bytes_ = static_cast<double>(free_.size()) * static_cast<double>(largest_bucket());
    for (Shard& shard : shards_) make_gradient(shard);
    add_hooks();
  }

  Result<void> move_out(const std::filesystem::path& folder) {
    if (stage_.parameter_tier == Tier::device || units_.empty()) return {};
    std::int64_t end = 0;
    for (const std::size_t bucket : units_) {
      shards_[bucket].home.at = end;
      end = next_page(end + static_cast<std::int64_t>(shards_[bucket].own.nbytes()));
    }
    if (!emulated_) {
      SIBYL_TRY(Outside outside, Outside::make(stage_.parameter_tier, end, folder));
      outside_ = std::make_unique<Outside>(std::move(outside));
    }
    for (const std::size_t bucket : units_) {
      Shard& shard = shards_[bucket];
      shard.home.outside = outside_.get();
      if (outside_) {
        outside_->write(shard.home.at, bytes_of(shard.own));
        outside_->settle(shard.home.at, static_cast<std::int64_t>(shard.own.nbytes()));
      }
      shard.own = at::Tensor();
    }
    copying_ = std::make_unique<CopyThread>();
    return {};
  }
  OffloadedBytes moved() const { return moved_; }

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
    thread_.wait();
    for (Shard& shard : shards_) harvest(shard);
  }

  void record(Recorder* recorder) {
    thread_.record(recorder);
    recorder_ = recorder;
  }

  std::vector<Part> parts() const {
    std::vector<Part> result;
    for (const Shard& shard : shards_)
      result.push_back({shard.bucket, shard.range, shard.own, shard.gradient, shard.home});
    return result;
  }

  void gather_updated() {
    for (Shard& shard : shards_)
      if (!shard.unit) thread_.begin(Collective::all_gather, on_wire(shard.flat, shard.bucket->elements), "all-gather");
    thread_.wait();
  }

  void before_forward(std::size_t step) {
    for (std::size_t n = 0; n < units_.size(); ++n) {
      Shard& shard = shards_[units_[n]];
      if (step < shard.unit->begin || step >= shard.unit->end) continue;
      shard.over = false;
      need(shard);
      if (step != shard.unit->begin) continue;
      const auto ahead = static_cast<std::size_t>(shard.unit->ahead);
      for (std::size_t k = 1; k <= ahead && n + k < units_.size(); ++k) gather(shards_[units_[n + k]]);
      if (n + ahead + 1 < units_.size()) bring(shards_[units_[n + ahead + 1]]);
    }
  }

  void after_forward(std::size_t step) {
    for (const std::size_t bucket : units_) {
      Shard& shard = shards_[bucket];
      if (step + 1 == shard.unit->end && !stays_gathered(stage_, *shard.unit)) release(shard);
    }
  }

  void begin_backward(Turn::Kind kind) {
    arrivals_.begin(kind);
    for (Shard& shard : shards_) {
      shard.over = false;
      shard.arrived = 0;
    }
  }

  void before_backward(std::size_t step) {
    for (std::size_t n = units_.size(); n-- > 0;) {
      Shard& shard = shards_[units_[n]];
      if (step < shard.unit->begin || step >= shard.unit->end) continue;
      if (shard.over) continue;                              // another sync's parameters are read within the same steps
      if (shard.gathered && shard.gathering == 0) continue;  // entered before
      need(shard);
      const auto ahead = static_cast<std::size_t>(shard.unit->ahead_backward);
      for (std::size_t k = 1; k <= ahead && k <= n; ++k)
        if (Shard& next = shards_[units_[n - k]]; !next.over) gather(next);
      if (ahead >= n) continue;
      if (Shard& next = shards_[units_[n - ahead - 1]]; !next.over) bring(next);
    }
  }

  // Where gradients of weights are put off, none tells when a unit is read no more.
  void after_backward(std::size_t first) {
    if (!splits_) return;
    for (const std::size_t bucket : units_) {
      Shard& shard = shards_[bucket];
      if (shard.over || shard.unit->begin < first) continue;
      shard.over = true;
      release(shard);
    }
  }

  void gather_all() {
    for (const std::size_t bucket : units_) gather(shards_[bucket]);
    for (const std::size_t bucket : units_) need(shards_[bucket]);
  }
  void release_all() {
    for (const std::size_t bucket : units_) release(shards_[bucket]);
  }

  Bytes weights() const {
    double bytes = 0;
    for (const Shard& shard : shards_)
      if (!shard.unit || !copying_)
        bytes += static_cast<double>(((shard.unit ? shard.own : shard.flat).nbytes() + 63) / 64 * 64);
    return Bytes{bytes};
  }
  Bytes communication() const { return Bytes{buffer_bytes_}; }

 private:
  [[nodiscard]] static c10::ScalarType type_of(const Shard& shard) { return aten::scalar_type(shard.bucket->dtype); }
  at::Tensor made(const Shard& shard, std::int64_t elements) const {
    return at::empty({elements}, memory_.dtype(type_of(shard)));
  }

  void lay_out(std::size_t index) {
    const at::NoGradGuard no_grad;
    Shard& shard = shards_[index];
    shard.bucket = &sync_.buckets[index];
    shard.range = part_of(*shard.bucket, communicator_.size(), communicator_.rank());
    shard.flat = made(shard, shard.bucket->elements);
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

  void own_unit(std::size_t index) {
    const at::NoGradGuard no_grad;
    Shard& shard = shards_[stage_.units[index].bucket];
    shard.unit = &stage_.units[index];
    shard.unit_index = index;
    shard.own = shard.own.clone();
    release(shard);
  }

  void make_gradient(Shard& shard) {
    if (sync_.buffers > 0) {
      shard.gradient = made(shard, shard.range.size());
      return;
    }
    shard.buffer = made(shard, shard.bucket->elements);
    shard.gradient = shard.buffer.narrow(0, shard.range.begin, shard.range.size());
    if (gradients_lie_in(shard))
      aten::resize_weightless(shard.buffer, 0);
    else
      buffer_bytes_ += static_cast<double>(shard.bucket->bytes());
  }
  // Gradients of two bytes lie in their bucket, if it is theirs alone; those of an emulated device are counted as the
  // parameters'.
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
    const bool complete = ++shard.arrived == shard.place.size();
    if (armed_ && sync_.overlapped) take(index, slot);
    if (complete && !splits_ && shard.unit && shard.unit->ahead_backward == 0) gather_behind(shard);
    if (armed_ && sync_.overlapped) send_ready();
    if (!complete) return;
    shard.arrived = 0;
    shard.over = true;
    if (shard.unit) release(shard);
  }

  // The next unit's parameters are asked for before the gradients of this one are sent. Where gradients of weights are
  // put off nothing is known to be complete, and it is gathered when it is read.
  void gather_behind(Shard& shard) {
    release(shard);
    for (std::size_t n = 1; n < units_.size(); ++n)
      if (&shards_[units_[n]] == &shard && !shards_[units_[n - 1]].over) gather(shards_[units_[n - 1]]);
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
      shard.buffer = shard.room.narrow(0, 0, shard.bucket->bytes()).view(type_of(shard));
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
      wait_for(oldest->sending);
      harvest(*oldest);
    }
    at::Tensor room = std::move(free_.back());
    free_.pop_back();
    return room;
  }
  at::Tensor new_room() const { return at::empty({largest_bucket()}, memory_.dtype(at::kByte)); }
  [[nodiscard]] std::int64_t largest_bucket() const {  // bytes
    std::int64_t largest = 0;
    for (const Bucket& bucket : sync_.buckets) largest = std::max(largest, bucket.bytes());
    return largest;
  }

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
      shard.sending = thread_.begin(Collective::reduce_scatter, on_wire(shard.buffer, shard.bucket->elements),
                                    bucket_name(next_, "reduce-scatter"));
      if (copies_ == nullptr) continue;
      const auto begin = static_cast<std::size_t>(shard.range.begin),
                 size = static_cast<std::size_t>(shard.range.size());
      const Elements part = on_wire(shard.buffer, shard.bucket->elements).part(begin, size);
      shard.sending = thread_.begin(Collective::all_reduce, part, bucket_name(next_), copies_);
    }
  }

  void bring(Shard& shard) {
    if (!copying_ || shard.gathered || shard.bringing > 0) return;
    if (emulated_) emulated_->wait();  // not before what was launched has run
    shard.own = made(shard, shard.range.size());
    shard.bringing = copying_->begin([this, &shard] {
      const std::string name = part_name(shard.unit_index);
      const Recording recording(recorder_, Recorder::Track::copies, name, "offload");
      if (emulated_)
        emulated_->copy(emulated_->times().brought[shard.unit_index]);
      else
        outside_->read(shard.home.at, bytes_of(shard.own));
      moved_.in += static_cast<std::int64_t>(shard.own.nbytes());
    });
  }

  void gather(Shard& shard) {
    if (shard.gathered) return;
    bring(shard);
    if (shard.bringing > 0) {
      copying_->wait(shard.bringing);
      if (emulated_) emulated_->host_waited();
    }
    if (emulated_) {
      const std::vector<EmulatedWork>& copies = emulated_->times().unit_copies;
      if (!copies.empty()) emulated_->run(copies[shard.unit_index]);
      emulated_->wait();  // not before what was launched has run
    }
    const at::NoGradGuard no_grad;
    resize(shard, shard.bucket->elements);
    shard.flat.narrow(0, shard.range.begin, shard.range.size()).copy_(shard.own);
    if (std::exchange(shard.bringing, 0) > 0) shard.own = at::Tensor();
    shard.gathering =
        thread_.begin(Collective::all_gather, on_wire(shard.flat, shard.bucket->elements), unit_name(shard.unit_index));
    shard.gathered = true;
  }

  void need(Shard& shard) {
    gather(shard);
    if (shard.gathering > 0) wait_for(shard.gathering);
    shard.gathering = 0;
  }

  void release(Shard& shard) {
    if (!shard.gathered) return;
    if (shard.gathering > 0) wait_for(shard.gathering);
    shard.gathering = 0;
    resize(shard, 0);
    shard.gathered = false;
  }

  // The views stay what they are; they can be read while the memory is there.
  void resize(Shard& shard, std::int64_t elements) const {
    const auto bytes = static_cast<std::size_t>(elements) * shard.flat.itemsize();
    if (emulated_)
      aten::resize_weightless(shard.flat, bytes);
    else
      at::native::resize_bytes_cpu(shard.flat.storage().unsafeGetStorageImpl(), bytes);
  }

  void wait_for(std::size_t number) {
    thread_.wait(number);
    if (emulated_) emulated_->host_waited();
  }

  // An emulated device has no memory to send from: all messages, one after the other, go through one buffer, which
  // counts for nothing.
  void make_wire() {
    const aten::MemoryMeter::Pause uncounted;
    wire_ = at::zeros({largest_bucket()}, at::kByte);
  }
  Elements on_wire(const at::Tensor& tensor, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements) * tensor.itemsize();
    return {bytes_of(emulated_ ? wire_ : tensor).first(bytes), element_of(tensor.scalar_type())};
  }

  Replica& replica_;
  const Stage& stage_;
  const GradientSync& sync_;
  Communicator& communicator_;  // of the ranks that hold all parts
  Communicator* copies_;        // of those that hold the same part; none: this one alone
  EmulatedDevice* emulated_;    // none: this machine itself
  at::TensorOptions memory_;    // its
  bool splits_;                 // gradients of weights are put off
  GradientArrivals arrivals_;
  at::Tensor wire_;
  std::vector<Shard> shards_;       // by bucket
  std::vector<std::size_t> units_;  // their buckets, in the units' order
  std::unordered_map<LocalTensorId, std::pair<std::size_t, std::size_t>> place_of_;
  AccumulationHooks hooks_;
  std::vector<at::Tensor> free_;  // bytes for buffers
  double buffer_bytes_ = 0;
  std::size_t next_ = 0;  // bucket to send
  bool armed_ = false;
  bool first_ = true;  // to be reduced in this step
  CommunicationThread thread_;
  at::Tensor share_;
  std::unique_ptr<Outside> outside_;  // where parts of units lie; none: here, or on an emulated device
  OffloadedBytes moved_;
  Recorder* recorder_ = nullptr;
  std::unique_ptr<CopyThread> copying_;  // none: parts of units are here. Last: what it runs uses the others
};

ShardedSync::ShardedSync(Replica& replica, std::size_t index, Communicator& communicator, Communicator* copies,
                         int replicas)
    : impl_(std::make_unique<Impl>(replica, index, communicator, copies, replicas)) {}
ShardedSync::~ShardedSync() = default;
Result<void> ShardedSync::move_out(const std::filesystem::path& folder) { return impl_->move_out(folder); }
OffloadedBytes ShardedSync::moved() const { return impl_->moved(); }
void ShardedSync::begin(const std::vector<LocalTensorId>& complete, bool first) { impl_->begin(complete, first); }
void ShardedSync::pack() { impl_->pack(); }
void ShardedSync::finish() { impl_->finish(); }
void ShardedSync::record(Recorder* recorder) { impl_->record(recorder); }
std::vector<ShardedSync::Part> ShardedSync::parts() const { return impl_->parts(); }
void ShardedSync::gather_updated() { impl_->gather_updated(); }
void ShardedSync::begin_backward(Turn::Kind kind) { impl_->begin_backward(kind); }
void ShardedSync::before_forward(std::size_t step) { impl_->before_forward(step); }
void ShardedSync::after_forward(std::size_t step) { impl_->after_forward(step); }
void ShardedSync::before_backward(std::size_t step) { impl_->before_backward(step); }
void ShardedSync::after_backward(std::size_t first) { impl_->after_backward(first); }
void ShardedSync::gather_all() { impl_->gather_all(); }
void ShardedSync::release_all() { impl_->release_all(); }
Bytes ShardedSync::weights() const { return impl_->weights(); }
Bytes ShardedSync::communication() const { return impl_->communication(); }

}  // namespace sibyl::trainer
