#include "oracle/search/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>

#include "oracle/axes.h"
#include "oracle/plan/compression.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/offload_activations.h"
#include "oracle/plan/zero.h"
#include "oracle/search/in_parallel.h"

namespace sibyl {
namespace {

using Visit = std::function<void(const Strategy&)>;

// Every way of sharing `left` devices among the axes from `next` on.
void each_mesh(const SearchSpace& space, Strategy& strategy, std::size_t next, int left, const Visit& visit) {
  if (next == space.axes.size()) {
    if (left > 1 && !space.data) return;
    strategy.data = left;
    return visit(strategy);
  }
  for (int size = 1; size <= left; ++size) {
    if (left % size != 0) continue;
    degree_of(strategy, space.axes[next]) = size;
    each_mesh(space, strategy, next + 1, left / size, visit);
  }
  degree_of(strategy, space.axes[next]) = 1;
}

bool exchanges_gradients(const Strategy& s) { return s.data * s.samplers() > 1; }

void each_micro_batch(const SearchSpace& space, Strategy strategy, const Visit& visit) {
  const std::int64_t ranks = std::int64_t{strategy.data} * strategy.samplers();  // with samples of their own
  if (strategy.global_batch % ranks != 0) return;
  const std::int64_t own = strategy.global_batch / ranks;
  std::vector<std::int64_t> sizes = space.micro_batches;
  sizes.push_back(own);
  std::ranges::sort(sizes, std::greater{});
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const std::int64_t size : sizes) {
    if (size > own || own % size != 0 || own / size > most_micro_batches) continue;
    strategy.accumulation = own / size;
    visit(strategy);
  }
}

std::vector<int> chunks_of(const SearchSpace& space, int pipeline) {
  if (!space.chunks.empty()) return space.chunks;
  std::vector<int> chunks = {2, 4, 8};
  for (int each = 2; each * pipeline <= space.layers; ++each)
    if (space.layers % (each * pipeline) == 0) chunks.push_back(each);
  std::ranges::sort(chunks);
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

void each_schedule(const SearchSpace& space, Strategy strategy, const Visit& visit) {
  if (strategy.pipeline == 1) return visit(strategy);
  for (const PipelineSchedule schedule : space.schedules) {
    strategy.schedule = schedule;
    strategy.chunks = 1;
    if (schedule != PipelineSchedule::interleaved) {
      visit(strategy);
      continue;
    }
    if (strategy.accumulation % strategy.pipeline != 0) continue;
    for (const int chunks : chunks_of(space, strategy.pipeline)) {
      strategy.chunks = chunks;
      visit(strategy);
    }
  }
}

void each_recompute(const SearchSpace& space, Strategy strategy, const Visit& visit) {
  for (const Recompute recompute : space.recompute) {
    strategy.recompute = recompute;
    visit(strategy);
    if (recompute != Recompute::full) continue;
    for (const int every : space.recompute_every) {
      strategy.recompute_every = every;
      visit(strategy);
    }
    strategy.recompute_every = 1;
    for (const int together : space.recompute_together) {
      strategy.recompute_together = together;
      visit(strategy);
    }
    strategy.recompute_together = 1;
  }
}

void each_state(const SearchSpace& space, const Strategy& recomputing, const Visit& visit) {
  each_recompute(space, recomputing, [&](Strategy strategy) {
    for (const int zero : space.zero) {
      if (zero > 0 && !exchanges_gradients(strategy)) continue;
      if (zero == 3 && strategy.recompute_together > 1) continue;
      strategy.zero = zero;
      visit(strategy);
      if (!space.shards || zero == 0) continue;
      for (int ranks = 2; ranks < strategy.data; ++ranks) {
        if (strategy.data % ranks != 0 || ranks == space.fixed.zero_ranks) continue;
        strategy.zero_ranks = ranks;
        visit(strategy);
      }
      strategy.zero_ranks = space.fixed.zero_ranks;
    }
  });
}

void each_gathering(const SearchSpace& space, const Strategy& strategy, const Visit& visit) {
  if (!space.gathers) return visit(strategy);
  Strategy one = strategy;
  one.gather_late = false;
  visit(one);
  one.gather_late = true;
  if (one.zero == 3) visit(one);
}

void each_offload(const SearchSpace& space, const Strategy& strategy, const Visit& visit) {
  if (space.offloads.empty()) return visit(strategy);
  Strategy one = strategy;
  for (const Offload& offload : space.offloads) {
    one.optimizer_tier = offload.optimizer;
    one.activation_tier = offload.activations;
    one.parameter_tier = offload.parameters;
    if (check_offload(one) && check_activations(one)) visit(one);
  }
}

void each_bucket(const SearchSpace& space, const Strategy& strategy, const Visit& visit) {
  if (space.buckets.empty() || !exchanges_gradients(strategy)) return visit(strategy);
  Strategy one = strategy;
  for (const Bytes bucket : space.buckets) {
    one.exchange = bucket.value() > 0 ? GradientExchange::overlapped : GradientExchange::at_end;
    one.bucket = bucket.value() > 0 ? bucket : strategy.bucket;
    one.first_bucket = std::min(strategy.first_bucket, one.bucket);
    visit(one);
  }
}

// Casts alone sum by parts; of two bytes a cast makes nothing less.
void each_compression(const SearchSpace& space, const Strategy& strategy, const Visit& visit) {
  if (space.compressions.empty() || !exchanges_gradients(strategy)) return visit(strategy);
  Strategy one = strategy;
  for (const Compression& compression : space.compressions) {
    one.compression = compression;
    if (check_compression(one)) visit(one);
  }
}

// When micro-batches' gradients are reduced; as `fixed` has it where that can be chosen.
void each_reduction(const SearchSpace& space, const Strategy& strategy, const Visit& visit) {
  if (!space.fixed.reduce_each && !space.reductions) return visit(strategy);
  Strategy one = strategy;
  one.reduce_each = true;
  const bool can = one.reduces_each() && exchanges_gradients(strategy) && check_reduce_each(one);
  one.reduce_each = false;
  if (!can || space.reductions) visit(one);
  one.reduce_each = true;
  if (can) visit(one);
}

// The usual order and those that differ from it, each once, whatever `fixed` has.
void each_order(const SearchSpace& space, Strategy strategy, const Visit& visit) {
  if (space.orders) strategy.order.clear();
  visit(strategy);
  if (!space.orders || strategy.data == 1) return;
  std::vector<MeshAxis> within;  // a replica, and split
  for (const MeshAxis axis : rank_order(strategy))
    if (axis != MeshAxis::data && axis != MeshAxis::pipeline && strategy.degree(axis) > 1) within.push_back(axis);
  if (strategy.pipeline > 1) {
    strategy.order = within;
    strategy.order.push_back(MeshAxis::pipeline);
    visit(strategy);
  }
  if (within.empty()) return;  // then replicas are nearest as it is
  strategy.order = {MeshAxis::data};
  visit(strategy);
}

void each_sequence(const SearchSpace& space, Strategy strategy, const Visit& visit) {
  if (space.overlaps_tensor) strategy.overlap_tensor = false;
  visit(strategy);
  if (!space.sequence || strategy.tensor == 1) return;
  strategy.sequence = true;
  visit(strategy);
  if (!space.overlaps_tensor) return;
  strategy.overlap_tensor = true;
  visit(strategy);
}

void each_context_exchange(const SearchSpace& space, Strategy strategy, const Visit& visit) {
  if (space.context_exchanges.empty() || strategy.context == 1) return visit(strategy);
  for (const ContextExchange exchange : space.context_exchanges) {
    strategy.context_exchange = exchange;
    visit(strategy);
  }
}

Strategy unsplit(Strategy strategy) {
  for (const MeshAxis axis : rank_order(strategy)) degree_of(strategy, axis) = 1;
  strategy.chunks = 1;
  strategy.sequence = false;
  strategy.accumulation = 1;
  strategy.schedule = PipelineSchedule::one_forward_one_backward;
  strategy.stage_starts.clear();
  strategy.split_until.clear();
  strategy.recompute_every = strategy.recompute_together = 1;
  return strategy;
}

std::vector<Strategy> strategies_of(const SearchSpace& space, const Strategy& mesh) {
  std::vector<Strategy> all;
  using Choices = std::function<void(const SearchSpace&, const Strategy&, const Visit&)>;
  const std::array<Choices, 11> choices = {each_sequence,    each_context_exchange, each_micro_batch, each_schedule,
                                           each_state,       each_gathering,        each_order,       each_bucket,
                                           each_compression, each_reduction,        each_offload};
  const std::function<void(const Strategy&, std::size_t)> choose = [&](const Strategy& strategy, std::size_t next) {
    if (next == choices.size()) return all.push_back(strategy);
    choices[next](space, strategy, [&](const Strategy& chosen) { choose(chosen, next + 1); });
  };
  choose(mesh, 0);
  return all;
}

}  // namespace

// Of a large space the list alone takes a tenth of a second.
std::vector<Strategy> strategies(const SearchSpace& space) {
  std::vector<Strategy> meshes;
  for (const int devices : space.devices) {
    Strategy start = unsplit(space.fixed);
    each_mesh(space, start, 0, devices, [&](const Strategy& mesh) { meshes.push_back(mesh); });
  }
  std::vector<std::vector<Strategy>> by_mesh(meshes.size());
  in_parallel(std::thread::hardware_concurrency(), meshes.size(),
              [&](std::size_t, std::size_t m) { by_mesh[m] = strategies_of(space, meshes[m]); });
  std::size_t count = 0;
  for (const std::vector<Strategy>& own : by_mesh) count += own.size();
  std::vector<Strategy> all;
  all.reserve(count);
  for (std::vector<Strategy>& own : by_mesh) {
    std::ranges::move(own, std::back_inserter(all));
    own = {};
  }
  return all;
}

Result<void> parse_axes(std::string_view text, SearchSpace& space) {
  space.axes.clear();
  space.data = space.sequence = false;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const std::vector<MeshAxis> said = axes_said(word);
    if (said.empty())
      return fail(ErrorCode::usage, fmt::format("'{}' is not an axis to search", word), "--axes",
                  fmt::format("of {}, with commas between", axis_choices("", "")));
    space.sequence = space.sequence || word == "sequence";
    for (const MeshAxis axis : said) {
      if (axis == MeshAxis::data)
        space.data = true;
      else if (std::ranges::find(space.axes, axis) == space.axes.end())
        space.axes.push_back(axis);
    }
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

namespace {

void add_offloads(const std::vector<Offload>& more, SearchSpace& space) {
  if (space.offloads.empty()) space.offloads.push_back({});
  for (const Offload& offload : more)
    if (std::ranges::find(space.offloads, offload) == space.offloads.end()) space.offloads.push_back(offload);
}

// To add one: a row here, and in strategies_of() what it makes of a strategy.
constexpr auto all_variations = std::to_array<SearchVariation>({
    {"order", "of ranks: stages nearer than replicas, replicas nearest",
     [](SearchSpace& space) { space.orders = true; }},
    {"bucket", "of gradients: 5, 25 and 100 MiB, or one message at the end",
     [](SearchSpace& space) { space.buckets = usual_buckets; }},
    {"compress", "gradients as they are, bf16, 1bit, 2bit, topk:0.01",
     [](SearchSpace& space) { space.compressions = usual_compressions; }},
    {"reduce", "gradients after the last micro-batch, or parts of them with each",
     [](SearchSpace& space) { space.reductions = true; }},
    {"shards", "ZeRO among groups of replicas", [](SearchSpace& space) { space.shards = true; }},
    {"prefetch", "of ZeRO 3 in backward: a block gathered while the one before it runs, or when it has run",
     [](SearchSpace& space) { space.gathers = true; }},
    {"schedule", "GPipe",
     [](SearchSpace& space) {
       if (std::ranges::count(space.schedules, PipelineSchedule::gpipe) == 0)
         space.schedules.push_back(PipelineSchedule::gpipe);
     }},
    {"overlap-tensor", "exchanges of a split sequence beside products",
     [](SearchSpace& space) { space.overlaps_tensor = true; }},
    {"recompute", "every 2nd, 3rd or 4th block alone, 2 or 4 blocks as one",
     [](SearchSpace& space) {
       space.recompute_every = usual_recompute_every;
       space.recompute_together = usual_recompute_together;
     }},
    {"context", "exchanged by heads, by keys or in a ring",
     [](SearchSpace& space) {
       space.context_exchanges = {ContextExchange::automatic, ContextExchange::heads, ContextExchange::keys,
                                  ContextExchange::ring};
     }},
    {"offload", "optimizer state, parameters of ZeRO 3 beside it, activations to the host",
     [](SearchSpace& space) { add_offloads(usual_offloads, space); }},
    {"nvme", "optimizer state and parameters to storage",
     [](SearchSpace& space) { add_offloads(offloads_to_storage, space); }},
});

}  // namespace

std::span<const SearchVariation> search_variations() { return all_variations; }

Result<void> parse_varied(std::string_view text, SearchSpace& space) {
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const auto meant = std::ranges::find(all_variations, word, &SearchVariation::word);
    if (meant == all_variations.end()) {
      std::vector<std::string_view> words;
      for (const SearchVariation& one : all_variations) words.push_back(one.word);
      return fail(ErrorCode::usage, fmt::format("'{}' is nothing to vary", word), "--vary",
                  fmt::format("of {}, with commas between", fmt::join(words, ", ")));
    }
    meant->vary(space);
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

namespace {

// What reads back as the same size.
std::string size_text(Bytes size) {
  const auto bytes = static_cast<std::int64_t>(size.value()), mebibyte = std::int64_t{1} << 20;
  return bytes % mebibyte == 0 ? fmt::format("{}MiB", bytes / mebibyte) : fmt::format("{}", bytes);
}

}  // namespace

std::string strategy_words(const Strategy& s) {
  static const Strategy usual;
  std::string words = "--parallel " + parallel_text(s);
  if (s.accumulation > 1) words += fmt::format(" --micro-batches {}", s.accumulation);
  if (s.pipeline > 1) words += " --schedule " + schedule_text(s);
  if (s.zero > 0) words += " --zero " + zero_text(s);
  if (s.reduce_each) words += " --reduce-each";
  if (s.gather_late && s.zero == 3) words += " --backward-prefetch post";
  if (s.recompute != Recompute::none) words += " --recompute " + recompute_text(s);
  if (const std::string order = order_text(s); !order.empty()) words += " --order " + order;
  if (s.context > 1 && s.context_exchange != ContextExchange::automatic)
    words += fmt::format(" --context-exchange {}", to_string(s.context_exchange));
  if (s.tensor > 1 && s.overlap_tensor) words += " --overlap-tensor";
  if (s.exchange == GradientExchange::at_end) words += " --no-overlap";
  if (s.has_buckets() && s.bucket != usual.bucket) words += fmt::format(" --bucket {}", size_text(s.bucket));
  if (s.compression.kind != Compression::Kind::none) words += " --compress " + compression_text(s.compression);
  if (s.offloads()) words += " --offload " + offload_text(s);
  return words;
}

int complexity(const Strategy& s) {
  constexpr int axis = 1000, option = 100, level = 10;
  int sum = 0;
  for (const MeshAxis a : rank_order(s))
    if (a != MeshAxis::data && s.degree(a) > 1) sum += axis;
  if (s.sequence) sum += option;
  if (s.schedule != PipelineSchedule::one_forward_one_backward) sum += option + level * s.chunks;
  if (s.zero > 0) sum += option + level * s.zero;
  if (s.recompute != Recompute::none) sum += option + level * static_cast<int>(s.recompute);
  if (s.accumulation > 1 && s.pipeline == 1) sum += level;
  if (!order_text(s).empty()) sum += level;
  if (s.has_buckets() && s.bucket != Strategy{}.bucket) sum += level;
  if (s.compression.kind != Compression::Kind::none) sum += option;
  if (s.reduce_each) sum += level;
  if (s.zero > 0 && s.zero_ranks > 0) sum += level;
  if (s.zero == 3 && s.gather_late) sum += level;
  if (s.context > 1 && s.context_exchange != ContextExchange::automatic) sum += level;
  if (s.recompute_every > 1 || s.recompute_together > 1) sum += level;
  if (s.sequence && s.overlap_tensor) sum += level;
  if (s.optimizer_tier != Tier::device) sum += option;
  if (s.parameter_tier != Tier::device) sum += option;
  if (s.activation_tier != Tier::device) sum += option;
  return sum;
}

}  // namespace sibyl
