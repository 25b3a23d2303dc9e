// sibyl-train: trains a model by a plan, for real, and measures. Alone, or as one process of an MPI job.

#include <fmt/format.h>
#include <mpi.h>

#include <exception>

#include "aten/device.h"
#include "aten/runtime.h"
#include "base/files.h"
#include "trainer/agree.h"
#include "trainer/program/emulation.h"
#include "trainer/program/request.h"
#include "trainer/train.h"

namespace sibyl::trainer {
namespace {

struct Prepared {
  Request request;
  Graph graph;
  Plan plan;
};

Result<Prepared> prepare(const std::vector<std::string>& words, int processes) {
  SIBYL_TRY(Request request, read_request(words, processes));
  if (request.help) return Prepared{std::move(request), {}, {}};
  SIBYL_TRY(Graph graph, cli::load_graph(request.model, request.import));
  SIBYL_TRY(Plan plan, make_plan(graph, request.strategy));
  if (request.emulated) {
    SIBYL_TRY(EmulatedTimes times, emulated_times(plan, request.emulated->calibration));
    times.vary = request.emulated->varies;
    request.settings.emulated = std::move(times);
  }
  return Prepared{std::move(request), std::move(graph), std::move(plan)};
}

int rank_on_node() {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return rank;
}

// Buckets, messages between stages and what the computing thread sends are under way at once.
Result<void> check_threads(const Communicator& communicator) {
  int provided = 0;
  MPI_Query_thread(&provided);
  if (communicator.size() == 1 || provided == MPI_THREAD_MULTIPLE) return {};
  return fail("this MPI library does not let several threads of a process send at once", {},
              "use one that provides MPI_THREAD_MULTIPLE");
}

Result<void> run(const std::vector<std::string>& words, Communicator& communicator) {
  SIBYL_CHECK(agree(communicator, check_threads(communicator)));
  Result<Prepared> prepared = prepare(words, communicator.size());
  SIBYL_CHECK(agree(communicator, prepared.map([](const Prepared&) {})));
  const Request& request = prepared->request;
  const bool speaks = communicator.rank() == 0;
  if (request.help) {
    return speaks ? print(*request.help) : Result<void>{};
  }
  aten::prepare_process(request.threads);
  if (request.cuda) {
    SIBYL_CHECK(agree(communicator, aten::use_cuda(request.gpu.value_or(rank_on_node()))));
    aten::allow_tf32(request.strategy.precision != Precision::fp32);
    prepared->request.settings.device = aten::device_limits().name;
  }
  SIBYL_TRY(const Measurement measured, train(prepared->graph, prepared->plan, request.settings, communicator));
  if (!speaks) return {};
  SIBYL_CHECK(print(request.json ? to_json(measured, prepared->plan, request.settings, request.model, request.threads)
                                 : to_text(measured, prepared->plan, request.settings)));
  if (measured.weights_error) return Failure(*measured.weights_error);
  if (measured.trace_error) return Failure(*measured.trace_error);
  return {};
}

int train_as_rank(const std::vector<std::string>& words) {
  Communicator communicator = Communicator::world();
  const Result<void> outcome = run(words, communicator);
  communicator.barrier();  // so that no rank's end is taken for a failure while another still speaks
  if (outcome) return 0;
  if (!outcome.error().message.empty()) fmt::print(stderr, "{}\n", to_string(outcome.error()));
  return exit_code(outcome.error().code);
}

}  // namespace
}  // namespace sibyl::trainer

int main(int argc, char** argv) {
  sibyl::aten::ask_for_huge_pages(argv);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int status = 3;
  try {
    status = sibyl::trainer::train_as_rank(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& exception) {
    // A bug on this rank alone: the others wait for it, so the job must end here.
    fmt::print(stderr, "sibyl-train: {}\n", exception.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return status;
}
