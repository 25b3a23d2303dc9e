#include "comm/communicator.h"

#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "comm/collectives.h"
#include "comm/communicator_state.h"
#include "comm/processors.h"
#include "comm/waiting.h"
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl {

Communicator::Communicator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;

// A communicator of its own, so that no other user's messages can be taken for ours.
Communicator Communicator::world() {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  comm::let_ranks_look(comm::processor_each(own));
  return Communicator(std::make_unique<State>(own));
}

Communicator Communicator::subgroup(const std::vector<int>& ranks) const {
  MPI_Group everyone = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &everyone);
  MPI_Group_incl(everyone, static_cast<int>(ranks.size()), ranks.data(), &chosen);
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_create_group(MPI_COMM_WORLD, chosen, 11, &own);
  MPI_Group_free(&chosen);
  MPI_Group_free(&everyone);
  return Communicator(std::make_unique<State>(own));
}

int Communicator::rank() const { return state_->rank; }
int Communicator::size() const { return state_->size; }
std::int64_t Communicator::bytes_sent() const { return state_->messages.bytes_sent(); }
std::int64_t Communicator::bytes_gathered() const { return state_->gathered; }

std::pair<std::int64_t, std::int64_t> Communicator::part(std::int64_t elements, int size, int rank) {
  const collective::Range range = collective::part(elements, size, rank);
  return {range.begin, range.end};
}

Algorithm Communicator::chosen(std::int64_t bytes) const {
  return collective::resolve(Collective::all_reduce, Algorithm::automatic, bytes, size());
}

void Communicator::all_reduce(const Elements& data, Algorithm algorithm, Reduction reduction) {
  if (size() == 1) return;
  const comm::Group group = state_->group(reduction);
  const auto bytes = static_cast<std::int64_t>(data.bytes.size());
  switch (collective::resolve(Collective::all_reduce, algorithm, bytes, size())) {
    case Algorithm::recursive_doubling: return comm::recursive_doubling_all_reduce(group, data);
    case Algorithm::rabenseifner: return comm::rabenseifner_all_reduce(group, data);
    case Algorithm::tree: return comm::tree_all_reduce(group, data);
    default:
      comm::ring_reduce_scatter(group, data);
      comm::ring_all_gather(group, data.bytes, width_of(data.type));
  }
}

// These two know one algorithm, the ring, whatever is asked for (collective::resolve).
void Communicator::reduce_scatter(const Elements& data, Algorithm /*algorithm*/) {
  if (size() > 1) comm::ring_reduce_scatter(state_->group(), data);
}

void Communicator::all_gather(std::span<float> data, Algorithm /*algorithm*/) {
  all_gather(std::as_writable_bytes(data), sizeof(float));
}

void Communicator::all_gather(std::span<std::byte> data, std::size_t width) {
  if (size() == 1) return;
  const std::int64_t before = bytes_sent();
  comm::ring_all_gather(state_->group(), data, width);
  state_->gathered += bytes_sent() - before;
}

void Communicator::all_to_all(std::span<const std::byte> out, std::span<std::byte> in) {
  const std::size_t part = out.size() / static_cast<std::size_t>(size());
  const auto at = [&](int index) { return static_cast<std::size_t>(index) * part; };
  if (part > 0) std::memcpy(in.data() + at(rank()), out.data() + at(rank()), part);
  std::vector<Swap> swaps;
  for (int step = 1; step < size(); ++step) {  // each begins with another partner
    const int peer = (rank() + step) % size();
    swaps.push_back({peer, out.subspan(at(peer), part), in.subspan(at(peer), part)});
  }
  swap(swaps);
}

void Communicator::swap(std::span<const Swap> swaps) {
  std::vector<comm::Messages::Swap> messages;
  for (const Swap& one : swaps) messages.push_back({one.peer, one.out, one.in});
  state_->messages.swap(messages);
}

void Communicator::broadcast(std::span<std::byte> data, int root) {
  if (size() > 1) comm::tree_broadcast(state_->group(), data, root);
}

void Communicator::reduce(const Elements& data, int root) {
  if (size() > 1) comm::tree_reduce(state_->group(), data, root);
}

void Communicator::send(std::span<const std::byte> data, int to) { state_->messages.send(data, to); }
void Communicator::receive(std::span<std::byte> data, int from) { state_->messages.receive(data, from); }

void Communicator::end_all(int code) const {
  MPI_Abort(state_->handle, code);
  std::_Exit(code);
}

void Communicator::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(state_->handle, &request);
  state_->messages.wait(request, 0);
}

std::vector<double> Communicator::gather_doubles(double value) const {
  std::vector<double> values(static_cast<std::size_t>(size()));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(&value, 1, MPI_DOUBLE, values.data(), 1, MPI_DOUBLE, state_->handle, &request);
  state_->messages.wait(request, 0);
  return values;
}

}  // namespace sibyl
