#include "gui/model/study.h"

#include <filesystem>
#include <list>
#include <tuple>
#include <utility>

#include "oracle/cli/options.h"
#include "oracle/cli/study.h"

namespace sibyl::gui {
namespace {

// When a file was last written; nothing for what is no file (zoo:NAME, a shipped cluster).
using FileTime = std::optional<std::filesystem::file_time_type>;
FileTime file_time(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? FileTime() : FileTime(time);
}

// The few values that were used last, by key.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  const Value* find(const Key& key) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
      if (entry->first == key) {
        entries_.splice(entries_.begin(), entries_, entry);
        return &entries_.front().second;
      }
    return nullptr;
  }
  const Value& keep(Key key, Value value) {
    if (entries_.size() == most_) entries_.pop_back();
    entries_.emplace_front(std::move(key), std::move(value));
    return entries_.front().second;
  }

 private:
  std::size_t most_;
  std::list<std::pair<Key, Value>> entries_;
};

constexpr std::size_t most_graphs = 8, most_clusters = 8, most_models = 8;

// Which cluster.
std::vector<cli::Option> cluster_options() {
  return cli::concatenated({{cli::cluster_option(), cli::nodes_option()}, cli::machine_options()});
}

}  // namespace

Result<cli::Arguments> read_question(const std::vector<std::string>& words) {
  cli::Command command;
  command.name = "predict";
  command.program = "sibyl predict";
  command.operands = "MODEL";
  command.options = cli::prediction_options();
  command.least_operands = command.most_operands = 1;
  return cli::Arguments::parse(std::move(command), words);
}

std::optional<Strategy> strategy_on(const Study& study, const Scenario& scenario) {
  const Scenario& known = study.scenario;
  if (scenario.model != known.model || scenario.changes != known.changes) return std::nullopt;
  const auto now = read_question(words(scenario));
  const auto then = read_question(words(known));
  if (!now || !then) return std::nullopt;
  const std::vector<cli::Option> same = cli::concatenated({cluster_options(), cli::model_options()});
  if (cli::given_words(*now, same) != cli::given_words(*then, same)) return std::nullopt;
  auto strategy = cli::read_strategy_for(*now, *study.cluster);
  if (!strategy) return std::nullopt;
  // What a change says may depend on the type that is computed in.
  const bool same_type = compute_type(strategy->precision) == compute_type(study.strategy.precision);
  return scenario.changes.empty() || same_type ? std::optional(*strategy) : std::nullopt;
}

struct StudyReader::Memo {
  using ModelKey = std::pair<std::string, FileTime>;
  // Not the micro-batch: a graph holds for any batch (models/graph.h), the one that it is imported with is only its first.
  using GraphKey = std::pair<ModelKey, std::vector<std::string>>;
  using ClusterKey = std::tuple<FileTime, std::vector<std::string>, std::vector<std::string>, DType>;

  Recent<ModelKey, std::vector<OpenDimension>> models{most_models};
  Recent<GraphKey, std::shared_ptr<const Graph>> graphs{most_graphs};
  Recent<ClusterKey, std::shared_ptr<const Cluster>> clusters{most_clusters};

  Part wrong = Part::none;
  std::vector<OpenDimension> dimensions;
  std::shared_ptr<const Cluster> unchanged;

  Result<std::shared_ptr<const Study>> read(const Scenario& scenario, const Cancelled& cancelled);
  Result<void> read_dimensions(const std::string& model);
  Result<std::shared_ptr<const Cluster>> read_cluster(const cli::Arguments& arguments,
                                                      const std::vector<std::string>& changes,
                                                      const Strategy& strategy);
  Result<std::shared_ptr<const Graph>> read_graph(const cli::Arguments& arguments, std::int64_t micro_batch,
                                                  const Cancelled& cancelled);
};

Result<void> StudyReader::Memo::read_dimensions(const std::string& model) {
  const ModelKey key{model, file_time(model)};
  if (const auto* known = models.find(key)) {
    dimensions = *known;
    return {};
  }
  SIBYL_TRY(dimensions, cli::load_dimensions(model));
  models.keep(key, dimensions);
  return {};
}

Result<std::shared_ptr<const Cluster>> StudyReader::Memo::read_cluster(const cli::Arguments& arguments,
                                                                       const std::vector<std::string>& changes,
                                                                       const Strategy& strategy) {
  const ClusterKey key{file_time(arguments.text("--cluster").value_or("")),
                       cli::given_words(arguments, cluster_options()), changes,
                       changes.empty() ? DType::f32 : compute_type(strategy.precision)};
  if (const auto* known = clusters.find(key)) return *known;
  if (changes.empty()) {
    SIBYL_TRY(Cluster cluster, cli::read_cluster(arguments));
    return clusters.keep(key, std::make_shared<const Cluster>(std::move(cluster)));
  }
  SIBYL_TRY(Cluster cluster, cli::with_changes(arguments, *unchanged, strategy));
  return clusters.keep(key, std::make_shared<const Cluster>(std::move(cluster)));
}

Result<std::shared_ptr<const Graph>> StudyReader::Memo::read_graph(const cli::Arguments& arguments,
                                                                   std::int64_t micro_batch,
                                                                   const Cancelled& cancelled) {
  const std::string& model = arguments.operands().front();
  const GraphKey key{{model, file_time(model)}, cli::given_words(arguments, cli::model_options())};
  if (const auto* known = graphs.find(key)) return *known;
  SIBYL_TRY(Graph graph, cli::load_graph_for(arguments, micro_batch, cancelled));
  return graphs.keep(key, std::make_shared<const Graph>(std::move(graph)));
}

Result<std::shared_ptr<const Study>> StudyReader::Memo::read(const Scenario& scenario, const Cancelled& cancelled) {
  dimensions.clear();
  unchanged.reset();
  wrong = Part::model;
  if (scenario.model.empty())
    return fail(ErrorCode::usage, "there is no model yet", {},
                "open an ONNX file, drop one here, or take one of the zoo");
  if (scenario.model == "-")
    return fail(ErrorCode::usage, "standard input can be read only once", "-",
                "save the model as a file and open that");
  SIBYL_CHECK(read_dimensions(scenario.model));
  wrong = Part::training;
  SIBYL_TRY(const cli::Arguments arguments, read_question(words(scenario)));
  wrong = Part::cluster;
  SIBYL_TRY(unchanged, read_cluster(arguments, {}, {}));
  wrong = Part::training;
  SIBYL_TRY(const Strategy strategy, cli::read_strategy_for(arguments, *unchanged));
  wrong = Part::cluster;
  SIBYL_TRY(std::shared_ptr<const Cluster> cluster, read_cluster(arguments, scenario.changes, strategy));
  wrong = Part::model;
  SIBYL_TRY(std::shared_ptr<const Graph> graph, read_graph(arguments, cli::micro_batch_of(strategy), cancelled));
  wrong = Part::none;
  return std::make_shared<const Study>(Study{scenario, std::move(graph), std::move(cluster), strategy});
}

StudyReader::StudyReader() : memo_(std::make_unique<Memo>()) {}
StudyReader::~StudyReader() = default;

Result<std::shared_ptr<const Study>> StudyReader::read(const Scenario& scenario, const Cancelled& cancelled) {
  return memo_->read(scenario, cancelled);
}
Part StudyReader::wrong() const { return memo_->wrong; }
std::vector<OpenDimension> StudyReader::dimensions() const { return memo_->dimensions; }
std::shared_ptr<const Cluster> StudyReader::unchanged_cluster() const { return memo_->unchanged; }

}  // namespace sibyl::gui
