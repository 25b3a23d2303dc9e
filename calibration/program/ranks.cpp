#include "calibration/program/ranks.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <thread>

namespace sibyl {
namespace {

std::string broadcast(const std::string& text, int root) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned long long bytes = text.size();
  MPI_Bcast(&bytes, 1, MPI_UNSIGNED_LONG_LONG, root, MPI_COMM_WORLD);
  std::string result = rank == root ? text : std::string(bytes, '\0');
  constexpr unsigned long long most = 1 << 30;  // MPI counts in int
  for (unsigned long long at = 0; at < bytes; at += most)
    MPI_Bcast(result.data() + at, static_cast<int>(std::min(most, bytes - at)), MPI_CHAR, root, MPI_COMM_WORLD);
  return result;
}

}  // namespace

Ranks::Ranks(int& argc, char**& argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &per_node_);
  MPI_Comm_rank(node, &on_node_);
  MPI_Comm_free(&node);
}

Ranks::~Ranks() { MPI_Finalize(); }

// Asleep: a rank that spins takes from what is measured beside it.
void Ranks::rest() const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

void Ranks::barrier() const { MPI_Barrier(MPI_COMM_WORLD); }

int Ranks::greatest(int value) const {
  int result = value;
  MPI_Allreduce(&value, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return result;
}

std::vector<double> Ranks::gather(double value) const {
  std::vector<double> values(static_cast<std::size_t>(size_));
  MPI_Allgather(&value, 1, MPI_DOUBLE, values.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
  return values;
}

std::string Ranks::from_first(const std::string& text) const { return broadcast(text, 0); }

Result<void> Ranks::agree(const Result<void>& own) const {
  int mine = own ? INT_MAX : rank_, lowest = INT_MAX;
  MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest == INT_MAX) return {};
  Error error = own ? Error{} : own.error();
  int code = static_cast<int>(error.code);
  MPI_Bcast(&code, 1, MPI_INT, lowest, MPI_COMM_WORLD);
  error.code = static_cast<ErrorCode>(code);
  error.message = broadcast(error.message, lowest);
  error.where = broadcast(error.where, lowest);
  error.hint = broadcast(error.hint, lowest);
  return Failure(error);
}

void Ranks::abort(int code) const {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

std::string Ranks::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string version(text.data(), static_cast<std::size_t>(length));
  return version.substr(0, version.find(','));  // "Open MPI v4.1.4"; what follows names builds and hosts
}

}  // namespace sibyl
