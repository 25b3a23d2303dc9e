// The processes of this run: who they are, and how they agree. MPI stays behind this file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sibyl {

class Ranks {
 public:
  // Initialises MPI for use by several threads, finalised by the destructor. One per process.
  Ranks(int& argc, char**& argv);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool first() const { return rank_ == 0; }
  [[nodiscard]] int per_node() const { return per_node_; }  // on this node
  [[nodiscard]] int on_node() const { return on_node_; }    // this one's number there

  // Each is called by all ranks together.
  void barrier() const;
  void rest() const;  // the same, leaving the processor alone meanwhile
  [[nodiscard]] int greatest(int value) const;
  [[nodiscard]] std::vector<double> gather(double value) const;  // by rank, on every rank
  [[nodiscard]] std::string from_first(const std::string& text) const;
  // Success if all succeeded; else, on every rank, the Error of the lowest rank that has one.
  [[nodiscard]] Result<void> agree(const Result<void>& own) const;

  [[noreturn]] void abort(int code) const;  // ends the whole job

  static std::string library_version();  // "Open MPI 4.1.4"

 private:
  int rank_ = 0, size_ = 1, per_node_ = 1, on_node_ = 0;
};

}  // namespace sibyl
