#include "calibration/cluster_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "calibration/cluster.h"
#include "example_cluster.h"
#include "netmodel/topology.h"
#include "tests/support/text.h"

namespace sibyl {
namespace {

using test::replaced;

namespace fs = std::filesystem;

TEST(ClusterFile, ANetworkMayBeAnotherCalibrations) {
  const std::string measured = "name: test\ncalibration: v100-sxm2-16gb\nnetwork: ours.json\n";
  const auto c = parse_cluster_file(measured, "c.yaml");
  ASSERT_TRUE(c) << to_string(c.error());
  EXPECT_EQ(c->network, "ours.json");
  const auto both = parse_cluster_file(measured + "nodes: 3\n", "c.yaml");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().where, "c.yaml:4");
  const auto neither = parse_cluster_file("name: test\ncalibration: v100-sxm2-16gb\n", "c.yaml");
  ASSERT_FALSE(neither);
  EXPECT_EQ(neither.error().message, "the cluster lacks the key 'nodes'");
}

TEST(ClusterFile, ReadsEveryField) {
  const auto c = parse_cluster_file(example_cluster, "c.yaml");
  ASSERT_TRUE(c) << to_string(c.error());
  EXPECT_EQ(c->name, "test");
  EXPECT_EQ(c->calibration, "v100-sxm2-16gb");
  EXPECT_EQ(c->topology.nodes, 3);
  EXPECT_EQ(c->topology.devices_per_node, 4);
  EXPECT_EQ(c->topology.device_link.kind, LinkKind::nvlink_mesh);
  EXPECT_EQ(c->topology.device_link.bandwidth, BytesPerSecond{120e9});
  EXPECT_NEAR(c->topology.device_link.latency.value(), 1.5e-6, 1e-15);
  EXPECT_EQ(c->topology.nics_per_node, 2);
  EXPECT_EQ(c->topology.nic_bandwidth, BytesPerSecond{12.5e9});  // 100 Gb/s are bits
  EXPECT_NEAR(c->topology.switch_latency.value(), 9e-8, 1e-15);
  EXPECT_EQ(c->topology.levels, 2);
  EXPECT_EQ(c->topology.nodes_per_switch, 34);
  EXPECT_EQ(c->topology.oversubscription, 3.0);
  EXPECT_TRUE(c->topology.switches_reduce);
  EXPECT_EQ(c->topology.nic_background, 0.0);
  EXPECT_EQ(
      parse_cluster_file(
          replaced(example_cluster, "  bandwidth: 100Gb/s\n", "  bandwidth: 100Gb/s\n  background: 0.25\n"), "c.yaml")
          ->topology.nic_background,
      0.25);
  EXPECT_EQ(
      parse_cluster_file(replaced(example_cluster, "latency: 1.5us}", "latency: 1.5us, background: 0.5}"), "c.yaml")
          ->topology.device_link.background,
      0.5);
  EXPECT_FALSE(c->topology.device_link.reduces);
  EXPECT_TRUE(parse_cluster_file(replaced(example_cluster, "nvlink mesh,", "nvswitch, reduces: true,"), "c.yaml")
                  ->topology.device_link.reduces);
  EXPECT_EQ(c->algorithm, Algorithm::ring);
  EXPECT_EQ(c->protocol, Protocol::ll128);
  EXPECT_EQ(c->overlap->communication_slowdown, 1.25);
  EXPECT_NEAR(c->step_overhead_per_operation->value(), 3e-6, 1e-15);
  EXPECT_EQ(c->storage_read, BytesPerSecond{2e9});
}

const std::string on_a_fabric = R"(name: test
calibration: v100-sxm2-16gb
nodes: 16
devices_per_node: 8
device_link: {kind: nvlink mesh, bandwidth: 120GB/s, latency: 1.5us}
nic: {per_node: 4, bandwidth: 100Gb/s, latency: 2us}
fabric:
  kind: dragonfly
  groups: 5
  routers: 4
  hosts: 4
  global_links: 2
  routing: valiant
  link: {bandwidth: 200Gb/s, latency: 200ns}
  global_link: {bandwidth: 100Gb/s, latency: 1us, duplex: half}
  switch_latency: 150ns
  ecmp: hash
  background: 0.1
  inside: {kind: hybrid cube mesh, links: 6}
)";

TEST(ClusterFile, ReadsAFabric) {
  const auto c = parse_cluster_file(on_a_fabric, "c.yaml");
  ASSERT_TRUE(c) << to_string(c.error());
  ASSERT_TRUE(c->shape);
  EXPECT_EQ(c->shape_where, "c.yaml:8");
  const auto& fly = std::get<fabric::Dragonfly>(c->shape->network);
  EXPECT_EQ(fly.groups, 5);
  EXPECT_EQ(fly.global_links, 2);
  EXPECT_TRUE(fly.valiant);
  EXPECT_EQ(fly.global_link.duplex, fabric::Duplex::half);
  EXPECT_EQ(fly.global_link.bandwidth, BytesPerSecond{12.5e9});
  EXPECT_EQ(c->shape->link.bandwidth, BytesPerSecond{25e9});
  EXPECT_NEAR(c->topology.switch_latency.value(), 1.5e-7, 1e-15);
  EXPECT_EQ(c->shape->ecmp, fabric::Ecmp::hash);
  EXPECT_EQ(c->shape->background, 0.1);
  EXPECT_EQ(std::get<fabric::CubeMesh>(c->shape->inside).links, 6);
  EXPECT_FALSE(c->shape->direct);
}

const std::string link_by_link = R"(name: test
calibration: v100-sxm2-16gb
nodes: 2
devices_per_node: 1
device_link: {kind: pcie, bandwidth: 12GB/s, latency: 1us}
nic: {per_node: 1, bandwidth: 100Gb/s, latency: 2us}
fabric:
  kind: custom
  links:
    - {from: node0, to: here}
    - {from: here, to: there, bandwidth: 50Gb/s, back: 25Gb/s, parallel: 2}
    - {from: there, to: node1, duplex: half}
  link: {bandwidth: 100Gb/s, latency: 300ns}
)";

TEST(ClusterFile, ReadsLinks) {
  const auto c = parse_cluster_file(link_by_link, "c.yaml");
  ASSERT_TRUE(c) << to_string(c.error());
  const auto& cables = std::get<fabric::Custom>(c->shape->network).cables;
  ASSERT_EQ(cables.size(), 3U);
  EXPECT_EQ(cables[0].link.bandwidth, BytesPerSecond{12.5e9});  // of `link`, wherever it stands
  EXPECT_EQ(cables[1].back, BytesPerSecond{3.125e9});
  EXPECT_EQ(cables[1].parallel, 2);
  EXPECT_EQ(cables[1].where, "c.yaml:11");
  EXPECT_EQ(cables[2].link.duplex, fabric::Duplex::half);
}

TEST(ClusterFile, ReadsWhoseRulesChoose) {
  const std::string line = "protocol: LL128\n";
  const auto with = [&](const std::string& library) {
    return parse_cluster_file(replaced(example_cluster, line, line + "library: " + library + "\n"), "c.yaml");
  };
  EXPECT_EQ(parse_cluster_file(example_cluster, "c.yaml")->library.library, Library::automatic);
  EXPECT_EQ(with("open mpi")->library.library, Library::open_mpi);
  const auto own = with(
      "\n- {collective: all_reduce, ranks: 16, bytes: 4KiB, algorithm: recursive_doubling}\n"
      "- {collective: all_to_all, bytes_each: 256B, algorithm: bruck}\n- {collective: all_reduce, algorithm: ring}");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->library.library, Library::table);
  using enum Collective;
  constexpr auto any_ranks = ChoiceRule::any_ranks;
  EXPECT_EQ(own->library.table,
            (std::vector<ChoiceRule>{{all_reduce, 16, 4096, Algorithm::recursive_doubling},
                                     {all_to_all, any_ranks, 256, Algorithm::bruck, ChoiceRule::Of::part},
                                     {all_reduce, any_ranks, ChoiceRule::any_size, Algorithm::ring}}));
  for (const char* wrong :
       {"mvapich", "{}", "\n- all_reduce", "\n- {collective: all_reduce}", "\n- {collective: sum, algorithm: ring}",
        "\n- {collective: all_gather, algorithm: rabenseifner}", "\n- {collective: all_reduce, algorithm: automatic}",
        "\n- {collective: all_reduce, bytes: 1, bytes_each: 1, algorithm: ring}"}) {
    const auto refused = with(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().where, wrong[0] == '\n' ? "c.yaml:14" : "c.yaml:13") << wrong;
  }
}

TEST(ClusterFile, ReadsDragonflyPlusAndLinksOfANode) {
  const std::string text = R"(name: test
calibration: v100-sxm2-16gb
nodes: 16
devices_per_node: 2
device_link: {kind: pcie, bandwidth: 12GB/s, latency: 5us}
nic: {per_node: 1, bandwidth: 100Gb/s, latency: 2us}
fabric:
  kind: dragonfly plus
  groups: 5
  leaves: 4
  spines: 2
  hosts: 4
  global_links: 2
  global_link: {bandwidth: 400Gb/s}
  inside:
    kind: custom
    links:
    - {from: device0, to: plx, bandwidth: 8GB/s, latency: 2us, duplex: half, parallel: 2}
    - {from: plx, to: device1, back: 4GB/s}
    - {from: nic0, to: plx}
)";
  const auto c = parse_cluster_file(text, "c.yaml");
  ASSERT_TRUE(c) << c.error().message;
  const auto& plus = std::get<fabric::DragonflyPlus>(c->shape->network);
  EXPECT_EQ(plus.groups, 5);
  EXPECT_EQ(plus.leaves, 4);
  EXPECT_EQ(plus.spines, 2);
  EXPECT_EQ(plus.hosts, 4);
  EXPECT_EQ(plus.global_links, 2);
  EXPECT_EQ(plus.global_link.bandwidth, BytesPerSecond{50e9});
  const auto& links = std::get<fabric::InnerLinks>(c->shape->inside).links;
  ASSERT_EQ(links.size(), 3U);
  EXPECT_EQ(links[0].to, "plx");
  EXPECT_EQ(links[0].bandwidth, BytesPerSecond{8e9});
  EXPECT_NEAR(links[0].latency->value(), 2e-6, 1e-15);
  EXPECT_EQ(links[0].duplex, fabric::Duplex::half);
  EXPECT_EQ(links[0].parallel, 2);
  EXPECT_EQ(links[0].where, "c.yaml:18");
  EXPECT_EQ(links[1].back, BytesPerSecond{4e9});
  EXPECT_FALSE(links[1].latency);
  for (const auto& [from, to, where] : {std::tuple{"    - {from: nic0, to: plx}", "    - {from: nic0}", "c.yaml:20"},
                                        {"to: plx, bandwidth: 8GB/s", "to: plx, rate: 8GB/s", "c.yaml:18"},
                                        {"latency: 2us, duplex: half", "back: 1GB/s, duplex: half", "c.yaml:18"},
                                        {"  spines: 2\n", "", "c.yaml:8"}}) {
    const auto refused = parse_cluster_file(replaced(text, from, to), "c.yaml");
    ASSERT_FALSE(refused) << to;
    EXPECT_EQ(refused.error().where, where) << refused.error().message;
  }
}

TEST(ClusterFile, NamesTheLineOfAFabricsError) {
  const struct {
    std::string text, from, to, where;
  } cases[] = {
      {on_a_fabric, "kind: dragonfly", "kind: butterfly", "c.yaml:8"},
      {on_a_fabric, "  kind: dragonfly\n", "", "c.yaml:8"},
      {on_a_fabric, "groups: 5", "group: 5", "c.yaml:9"},
      {on_a_fabric, "  groups: 5\n", "", "c.yaml:8"},
      {on_a_fabric, "hosts: 4", "hosts: none", "c.yaml:11"},
      {on_a_fabric, "routing: valiant", "routing: any", "c.yaml:13"},
      {on_a_fabric, "duplex: half", "duplex: simplex", "c.yaml:15"},
      {on_a_fabric, "ecmp: hash", "ecmp: both", "c.yaml:17"},
      {on_a_fabric, "background: 0.1", "background: 10", "c.yaml:18"},
      {on_a_fabric, "links: 6}", "lanes: 6}", "c.yaml:19"},
      {on_a_fabric, "kind: hybrid cube mesh", "kind: cube", "c.yaml:19"},
      {on_a_fabric, "fabric:\n", "switch: {levels: 2}\nfabric:\n", "c.yaml:7"},
      {link_by_link, "from: here, to: there,", "from: here,", "c.yaml:11"},
      {link_by_link, "parallel: 2", "parallel: 0", "c.yaml:11"},
      {link_by_link, "{from: node0, to: here}", "node0 to here", "c.yaml:10"},
  };
  for (const auto& c : cases) {
    const auto result = parse_cluster_file(replaced(c.text, c.from, c.to), "c.yaml");
    ASSERT_FALSE(result) << c.to;
    EXPECT_EQ(result.error().where, c.where) << c.to << ": " << result.error().message;
  }
}

TEST(ClusterFile, NamesTheLineOfAnError) {
  const struct {
    std::string from, to, where;
  } cases[] = {
      {"nodes: 3", "nodes: 0", "c.yaml:3"},
      {"nodes: 3", "nodes: many", "c.yaml:3"},
      {"nodes: 3", "nodes: 2.5", "c.yaml:3"},
      {"devices_per_node: 4", "devices_per_nodes: 4", "c.yaml:4"},
      {"devices_per_node: 4", "nodes: 4", "c.yaml:4"},
      {"120GB/s", "120GB", "c.yaml:5"},
      {"nvlink mesh", "string", "c.yaml:5"},
      {"latency: 1.5us", "latency: -1us", "c.yaml:5"},
      {"  bandwidth: 100Gb/s\n", "  bandwidth: fast\n", "c.yaml:8"},
      {"oversubscription: 3", "oversubscription: 0.5", "c.yaml:10"},
      {"oversubscription: 3", "oversubscription: 1e300", "c.yaml:10"},
      {"levels: 2, nodes_per_switch: 34, oversubscription: 3", "levels: 2", "c.yaml:10"},
      {"levels: 2, nodes_per_switch: 34, oversubscription: 3", "oversubscription: 3", "c.yaml:10"},
      {"reduces: true", "reduces: maybe", "c.yaml:10"},
      {"latency: 1.5us}", "latency: 1.5us, background: 2}", "c.yaml:5"},
      {"latency: 1.5us", "latency: 1e300us", "c.yaml:5"},
      {"algorithm: ring", "algorithm: square", "c.yaml:11"},
      {"protocol: LL128", "protocol: LL256", "c.yaml:12"},
      {"compute_slowdown: 1.1", "compute_slowdown: 0.9", "c.yaml:13"},
      {"calibration: v100-sxm2-16gb", "calibration: [a]", "c.yaml:2"},
      {"nic:\n", "nic: 7\nnics:\n", "c.yaml:6"},
  };
  for (const auto& c : cases) {
    const auto result = parse_cluster_file(replaced(example_cluster, c.from, c.to), "c.yaml");
    ASSERT_FALSE(result) << c.to;
    EXPECT_EQ(result.error().where, c.where) << c.to << ": " << result.error().message;
  }
}

TEST(ClusterFile, SaysWhatIsMissingAndWhatIsNotYaml) {
  const auto missing = parse_cluster_file(replaced(example_cluster, "name: test\n", ""), "c.yaml");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("'name'"), std::string::npos);
  EXPECT_FALSE(parse_cluster_file("", "c.yaml"));
  EXPECT_FALSE(parse_cluster_file("- 1\n- 2\n", "c.yaml"));
  const auto broken = parse_cluster_file("name: {a\nb", "c.yaml");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().where.substr(0, 7), "c.yaml:");
}

// Each kind of fabric makes a cluster, and what cannot be made says where.
TEST(Fabrics, MakeClusters) {
  const std::string head =
      "name: f\ncalibration: v100-sxm2-16gb\nnodes: 4\ndevices_per_node: 2\n"
      "device_link: {kind: nvswitch, bandwidth: 100GB/s, latency: 2us}\n"
      "nic: {per_node: 2, bandwidth: 100Gb/s, latency: 2us}\nfabric:\n";
  const fs::path file = fs::temp_directory_path() / ("sibyl_fabric_" + std::to_string(::getpid()) + ".yaml");
  const auto made = [&](const std::string& fabric) {
    std::ofstream(file) << head << fabric;
    return load_cluster(file.string());
  };
  for (const char* fabric :
       {"  kind: torus\n  dimensions: [2, 2]\n", "  kind: ring\n  size: 4\n", "  kind: fat tree\n  ports: 4\n",
        "  kind: fat tree\n  down: [4, 2]\n  up: 2\n  oversubscription: 3\n",
        "  kind: leaf spine\n  nodes_per_leaf: 2\n  leaves: 2\n  spines: 2\n",
        "  kind: rail optimised\n  nodes_per_leaf: 2\n  leaves: 2\n  spines: 2\n",
        "  kind: dragonfly\n  groups: 2\n  routers: 2\n  hosts: 2\n  global_links: 1\n", "  kind: fully connected\n"}) {
    const auto cluster = made(fabric);
    ASSERT_TRUE(cluster) << fabric << to_string(cluster.error());
    const auto time = cluster->network.collective(Collective::all_reduce, Bytes{1e6}, {2, 4, 1}).time;
    EXPECT_GT(time.time.value(), 0.0);
    EXPECT_NE(cluster->network.links(), nullptr);
  }
  const auto small = made("  kind: torus\n  dimensions: [3]\n");
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().where, file.string() + ":8");
  fs::remove(file);
}

}  // namespace
}  // namespace sibyl
