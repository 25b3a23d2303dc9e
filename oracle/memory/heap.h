// Where the heap of a process lays what it is asked for: which memory is used again, and by what, decides what a cache
// still holds of it (reuse.h). Sizes in bytes; addresses count from where the heap begins.
//
// As glibc's heap gives what frameworks ask for (posix_memalign, nothing mapped by itself): the smallest free block
// that is large enough, the lowest of those alike, its rest left free; else at the end. What is given back joins the
// free blocks beside it. To place a block at a multiple of 64 it must find more bytes than were asked for (an alignment
// of 64, a smallest block of 32, a header of 16 and sizes in sixteens: malloc/malloc.c of glibc 2.36, _int_memalign),
// so that a free block does not always serve as many bytes as it did before.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace sibyl {

class Heap {
 public:
  using Address = std::uint64_t;

  static constexpr std::uint64_t slack = 128;  // at most
  static constexpr std::uint64_t least_rest =
      1024;  // less goes along: small requests, which are not told of, would take it

  [[nodiscard]] Address take(std::uint64_t bytes);
  void give(Address address);
  void give_all();
  [[nodiscard]] std::uint64_t end() const { return end_; }  // of all that is taken

 private:
  using FreeBlocks = std::map<Address, std::uint64_t>;

  void leave_free(Address address, std::uint64_t bytes);
  std::uint64_t remove(FreeBlocks::iterator block);  // its bytes

  FreeBlocks free_;                                    // no two side by side, none at the end
  std::set<std::pair<std::uint64_t, Address>> sizes_;  // of the same
  std::unordered_map<Address, std::uint64_t> taken_;   // with the rest that went with it
  Address end_ = 0;
};

}  // namespace sibyl
