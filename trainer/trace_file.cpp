#include "trainer/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

namespace sibyl::trainer {
namespace {

// The ranks' texts, in their order, on rank 0.
std::vector<std::string> gathered(Communicator& communicator, const std::string& own) {
  const std::vector<double> sizes = communicator.gather_doubles(static_cast<double>(own.size()));
  std::vector<std::string> texts{own};
  if (communicator.rank() > 0) {
    communicator.send(std::as_bytes(std::span(own)), 0);
    return {};
  }
  for (int rank = 1; rank < communicator.size(); ++rank) {
    std::string text(static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]), '\0');
    communicator.receive(std::as_writable_bytes(std::span(text)), rank);
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

Result<void> can_write(const std::filesystem::path& path) {
  if (std::ofstream(path, std::ios::app)) return {};
  return fail(fmt::format("cannot write: {}", std::strerror(errno)), path.string());
}

Result<void> write_trace(Communicator& communicator, const TraceProcess& own, const std::vector<TraceArgument>& about,
                         const std::filesystem::path& path) {
  const std::vector<std::string> events = gathered(communicator, trace_events(own));
  if (communicator.rank() > 0) return {};
  std::ofstream file(path, std::ios::binary);
  file << trace_file(events, about);
  file.close();
  if (file) return {};
  return fail(fmt::format("cannot write: {}", std::strerror(errno)), path.string());
}

}  // namespace sibyl::trainer
