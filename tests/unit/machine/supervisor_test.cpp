// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The supervisor against real worker processes: this binary is its own worker (main below), and a candidate's name
// says how the worker misbehaves.
#include "machine/supervised_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/failure.hpp"
#include "machine/worker.hpp"
#include "machine/worker_environment.hpp"
#include "machine/worker_process.hpp"

namespace artune {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

[[noreturn]] void die_of(int signal_number) {
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
  std::abort();
}

[[noreturn]] void sleep_for_ever() {
  while (true) ::pause();
}

/// Behaves as the candidate's name says; what the name doesn't say is well.
class TestMachine final : public Machine {
 public:
  explicit TestMachine(MachineOptions options) : options_(std::move(options)) {}

  Result<DocumentHeader> describe() override {
    DocumentHeader header;
    header.kind = "test";
    header.tool = std::to_string(::getpid());
    header.simulated = true;
    header.world = World{options_.devices, options_.ranks_per_gpu, Launch::one_thread};
    return header;
  }
  std::vector<PairVerdict> verdicts() override {
    if (options_.nccl_file == "gate-dies" && !options_.known_verdicts) die_of(SIGBUS);
    if (options_.known_verdicts) return *options_.known_verdicts;
    return {{0, 1, Path::p2p, "usable", "", 1.5}};
  }
  std::vector<Offer> candidates(const Shape&) override {
    if (options_.known_verdicts) return {{{"gate-known", {}}, options_.known_verdicts->front().reason}};
    return {{{"good", {.blocks = 2, .threads = 64}}, ""}};
  }
  Verification verify(const Candidate& candidate, const Shape& shape) override {
    if (candidate.name == "crash") {
      std::fputs("some chatter\nCUDA error: an illegal address\n", stderr);
      die_of(SIGSEGV);
    }
    if (candidate.name == "exit") ::_exit(7);
    if (candidate.name == "hang") sleep_for_ever();
    if (candidate.name == "failure") throw Failure("cudaLaunchKernel", "misaligned address", 716, 0);
    Verification verification;
    verification.numerics = Numerics::rank_order_fp32;
    if (candidate.name == "wrong") verification.outcome = {OutcomeKind::wrong_sum, "rank 1, element 5"};
    if (candidate.name == "own-hang") verification.outcome = {OutcomeKind::hang, "rank 0 waits for rank 1"};
    if (candidate.name == "bytes") verification.outcome.detail = std::to_string(shape.bytes) + "\xff";
    return verification;
  }
  Timing time(const Candidate& candidate, const Shape&, const TimeRequest& request) override {
    if (candidate.name == "chatty") std::fputs(std::string(std::size_t{1} << 20, 'x').c_str(), stdout);
    Timing timing;
    timing.batch = request.batch;
    timing.samples_us.assign(static_cast<std::size_t>(request.samples), {1.25, 0.1});
    return timing;
  }
  OverlapTiming time_overlap(const Candidate& candidate, const Shape&, const OverlapRequest& request) override {
    if (candidate.name == "hang") sleep_for_ever();
    if (candidate.name == "failure") throw Failure("cudaLaunchKernel", "misaligned address", 716, 0);
    OverlapTiming timing;
    timing.batch = 9;
    timing.samples.assign(static_cast<std::size_t>(request.samples), {request.compute_us, request.compute_us + 1, 20, 30, 7});
    return timing;
  }

 private:
  MachineOptions options_;
};

SupervisorSettings quick(MachineOptions options = {}) {
  SupervisorSettings settings;
  settings.options = std::move(options);
  settings.options.devices = {0, 1};
  settings.deadlines = {milliseconds(20'000), milliseconds(20'000), milliseconds(20'000),
                        milliseconds(20'000), milliseconds(3'000),  milliseconds(2'000)};
  return settings;
}

std::string worker_pid(SupervisedMachine& machine) { return machine.verify({"good", {}}, {}).outcome.ok() ? "alive" : "dead"; }

TEST(SupervisedMachine, BesideComputeAStarvedCandidateIsAHangAndTheNextIsTimed) {
  SupervisorSettings settings = quick();
  settings.deadlines.work = milliseconds(500);
  SupervisedMachine machine(settings);
  const OverlapRequest request{.samples = 2, .compute_us = 5000, .order = LaunchOrder::reduction_first};
  EXPECT_EQ(machine.time_overlap({"hang", {}}, {}, request).outcome.kind, OutcomeKind::hang);
  const OverlapTiming failed = machine.time_overlap({"failure", {}}, {}, request);
  EXPECT_EQ(failed.outcome.kind, OutcomeKind::error);
  EXPECT_THAT(failed.outcome.detail, HasSubstr("misaligned address"));
  const OverlapTiming timing = machine.time_overlap({"good", {}}, {}, request);
  ASSERT_TRUE(timing.outcome.ok()) << timing.outcome.detail;
  EXPECT_EQ(timing.batch, 9);
  ASSERT_EQ(timing.samples.size(), 2U);
  EXPECT_EQ(timing.samples[1].compute_beside_us, 5001);
  EXPECT_EQ(timing.samples[1].completed, 7);
  EXPECT_EQ(machine.workers_started(), 3);
}

TEST(SupervisedMachine, PassesAnswersThrough) {
  SupervisedMachine machine(quick());
  const auto header = machine.describe();
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_TRUE(header->simulated);
  EXPECT_NE(header->tool, std::to_string(::getpid())) << "the machine must live in another process";
  const auto offers = machine.candidates({});
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].candidate, (Candidate{"good", {.blocks = 2, .threads = 64}}));
  EXPECT_EQ(machine.verify({"good", {}}, {}).numerics, Numerics::rank_order_fp32);
  const Timing timing = machine.time({"good", {}}, {}, {.samples = 3, .batch = 9});
  EXPECT_EQ(timing.batch, 9);
  EXPECT_EQ(timing.samples_us, (std::vector<std::vector<double>>(3, {1.25, 0.1})));
  EXPECT_EQ(machine.workers_started(), 1);
}

TEST(SupervisedMachine, BytesThatAreNoUtf8DoNotBreakTheLine) {
  SupervisedMachine machine(quick());
  Shape shape;
  shape.bytes = 4096;
  EXPECT_EQ(machine.verify({"bytes", {}}, shape).outcome.detail, "4096\xef\xbf\xbd");
}

TEST(SupervisedMachine, CrashIsTheCandidatesResultAndTheNextRequestGetsANewWorker) {
  std::vector<std::string> events;
  SupervisorSettings settings = quick();
  settings.on_event = [&](const std::string& line) { events.push_back(line); };
  SupervisedMachine machine(settings);
  const Outcome outcome = machine.verify({"crash", {}}, {}).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::crash);
  EXPECT_THAT(outcome.detail, HasSubstr("SIGSEGV"));
  EXPECT_THAT(outcome.detail, HasSubstr("CUDA error: an illegal address")) << "the last line it printed, not the chatter before";
  EXPECT_THAT(outcome.detail, ::testing::Not(HasSubstr("chatter")));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0], HasSubstr("verify crash"));
  EXPECT_EQ(machine.workers_started(), 1) << "a new one is started only when it is needed";
  EXPECT_EQ(worker_pid(machine), "alive");
  EXPECT_EQ(machine.workers_started(), 2);
}

TEST(SupervisedMachine, SilentExitIsACrashWithItsStatus) {
  SupervisedMachine machine(quick());
  const Outcome outcome = machine.verify({"exit", {}}, {}).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::crash);
  EXPECT_THAT(outcome.detail, HasSubstr("status 7"));
}

TEST(SupervisedMachine, HangEndsAtTheDeadline) {
  SupervisorSettings settings = quick();
  settings.deadlines.work = milliseconds(300);
  SupervisedMachine machine(settings);
  const auto before = std::chrono::steady_clock::now();
  const Outcome outcome = machine.verify({"hang", {}}, {}).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::hang);
  EXPECT_THAT(outcome.detail, HasSubstr("300 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
}

TEST(SupervisedMachine, WorkersOwnReportOfAHangReplacesIt) {
  SupervisedMachine machine(quick());
  EXPECT_EQ(machine.verify({"own-hang", {}}, {}).outcome.detail, "rank 0 waits for rank 1");
  EXPECT_EQ(worker_pid(machine), "alive");
  EXPECT_EQ(machine.workers_started(), 2);
}

TEST(SupervisedMachine, FailureInsideIsAnErrorAndReplacesIt) {
  SupervisedMachine machine(quick());
  const Outcome outcome = machine.verify({"failure", {}}, {}).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::error);
  EXPECT_THAT(outcome.detail, HasSubstr("misaligned address"));
  EXPECT_EQ(worker_pid(machine), "alive");
  EXPECT_EQ(machine.workers_started(), 2);
}

TEST(SupervisedMachine, WrongSumKeepsTheWorker) {
  SupervisedMachine machine(quick());
  EXPECT_EQ(machine.verify({"wrong", {}}, {}).outcome.kind, OutcomeKind::wrong_sum);
  EXPECT_EQ(worker_pid(machine), "alive");
  EXPECT_EQ(machine.workers_started(), 1);
}

TEST(SupervisedMachine, OutputOfTheWorkerNeverBlocksIt) {
  SupervisedMachine machine(quick());
  EXPECT_TRUE(machine.time({"chatty", {}}, {}, {.samples = 1, .batch = 1}).outcome.ok());
}

TEST(SupervisedMachine, GivesUpAfterTooManyWorkers) {
  SupervisorSettings settings = quick();
  settings.most_workers = 2;
  SupervisedMachine machine(settings);
  machine.verify({"exit", {}}, {});
  machine.verify({"exit", {}}, {});
  const Outcome outcome = machine.verify({"good", {}}, {}).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::unavailable);
  EXPECT_THAT(outcome.detail, HasSubstr("2 workers were lost"));
  const auto offers = machine.candidates({});
  ASSERT_FALSE(offers.empty()) << "nothing is silently left out";
  EXPECT_THAT(offers[0].unavailable, HasSubstr("2 workers were lost"));
}

TEST(SupervisedMachine, GateThatKillsItsWorkerIsNotRunAgain) {
  MachineOptions options;
  options.nccl_file = "gate-dies";
  SupervisedMachine machine(quick(options));
  const auto verdicts = machine.verdicts();
  ASSERT_EQ(verdicts.size(), 4U) << "two ordered pairs on two paths";
  EXPECT_EQ(verdicts[0].verdict, "unavailable");
  EXPECT_THAT(verdicts[0].reason, HasSubstr("SIGBUS"));
  const auto offers = machine.candidates({});
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].candidate.name, "gate-known") << "the new worker must be told what the gate found";
  EXPECT_EQ(machine.verdicts(), verdicts);
  EXPECT_EQ(machine.workers_started(), 2);
}

TEST(SupervisedMachine, MachineThatCannotBeHadSaysWhy) {
  MachineOptions options;
  options.rig = "refuse";
  SupervisedMachine machine(quick(options));
  const auto header = machine.describe();
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().reason, Reason::no_usable_gpu);
  EXPECT_EQ(header.error().message, "the driver is too old");
  const Outcome outcome = machine.verify({"good", {}}, {}).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::unavailable);
  EXPECT_EQ(outcome.detail, "the driver is too old");
  EXPECT_EQ(machine.workers_started(), 1) << "asking again would not change the answer";
}

TEST(SupervisedMachine, StartThatNeverEndsIsBounded) {
  MachineOptions options;
  options.rig = "never-ready";
  SupervisorSettings settings = quick(options);
  settings.deadlines.start = milliseconds(200);
  SupervisedMachine machine(settings);
  EXPECT_EQ(machine.verify({"good", {}}, {}).outcome.kind, OutcomeKind::hang);
  EXPECT_EQ(machine.verify({"good", {}}, {}).outcome.kind, OutcomeKind::hang);
  const Outcome third = machine.verify({"good", {}}, {}).outcome;
  EXPECT_EQ(third.kind, OutcomeKind::unavailable);
  EXPECT_THAT(third.detail, HasSubstr("no worker starts any more"));
  EXPECT_EQ(machine.workers_started(), 2);
}

TEST(SupervisedMachine, ExecutableThatIsNoneIsSaid) {
  SupervisorSettings settings = quick();
  settings.executable = "/nonexistent/ar-tune";
  SupervisedMachine machine(settings);
  const Outcome outcome = machine.verify({"good", {}}, {}).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::crash);
  EXPECT_THAT(outcome.detail, HasSubstr("exec failed"));
}

TEST(SupervisedMachine, TopologyNeedsNoMachine) {
  MachineOptions options;
  options.rig = "never-ready";
  SupervisedMachine machine(quick(options));
  const auto topology = machine.topology();
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ((*topology)["rig"], "never-ready");
}

TEST(WorkerProcess, IgnoresCtrlCOfItsTerminal) {
  auto worker = WorkerProcess::spawn("/proc/self/exe", {"test", "worker"}, worker_environment({}, ::environ));
  ASSERT_TRUE(worker);
  EXPECT_EQ(Exchange::State::answered, (*worker)->ask("{\"id\":1,\"request\":\"describe\"}\n", milliseconds(20'000)).state);
  EXPECT_EQ(::getpgid((*worker)->pid()), (*worker)->pid()) << "a terminal sends SIGINT to the foreground group only";
}

TEST(WorkerProcess, DiesWithItsSupervisor) {
  // A child supervises, tells us the worker's pid, and is killed without any chance to clean up.
  int words[2];
  ASSERT_EQ(::pipe(words), 0);
  const pid_t supervisor = ::fork();
  ASSERT_GE(supervisor, 0);
  if (supervisor == 0) {
    auto worker = WorkerProcess::spawn("/proc/self/exe", {"test", "worker"}, worker_environment({}, ::environ));
    (*worker)->ask("{\"id\":1,\"request\":\"describe\"}\n", milliseconds(20'000));
    const pid_t pid = (*worker)->pid();
    if (::write(words[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    while (true) ::pause();
  }
  pid_t worker = 0;
  ASSERT_EQ(::read(words[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  const auto gone = [&] {
    std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
    std::string pid, name, state;
    stat >> pid >> name >> state;
    return !stat || state == "Z";  // nobody may reap orphans in a container
  };
  for (int i = 0; i < 500 && !gone(); ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(gone());
  ::close(words[0]);
  ::close(words[1]);
}

TEST(WorkerEnvironment, SetsWhatMustBeSetBeforeLibrariesLoad) {
  const char* inherited[] = {"PATH=/bin", "NCCL_MAX_CTAS=4", "NCCL_MIN_CTAS=1", "CUDA_DEVICE_MAX_CONNECTIONS=8", "NCCL_NVLS_ENABLE=1", nullptr};
  EXPECT_THAT(worker_environment({}, inherited),
              ::testing::UnorderedElementsAre("PATH=/bin", "NCCL_NVLS_ENABLE=1", "CUDA_DEVICE_MAX_CONNECTIONS=32", "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  MachineOptions shared;
  shared.ranks_per_gpu = 2;
  EXPECT_THAT(worker_environment(shared, inherited),
              ::testing::UnorderedElementsAre("PATH=/bin", "CUDA_DEVICE_MAX_CONNECTIONS=32", "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                                              "NCCL_MULTI_RANK_GPU_ENABLE=1", "NCCL_NVLS_ENABLE=0"));
}

Result<std::unique_ptr<Machine>> make_test_machine(const MachineOptions& options) {
  if (options.rig == "refuse") return Error{Reason::no_usable_gpu, "the driver is too old"};
  if (options.rig == "never-ready") sleep_for_ever();
  return std::unique_ptr<Machine>(std::make_unique<TestMachine>(options));
}

Result<Json> probe_options(const MachineOptions& options) { return options_to_json(options); }

}  // namespace
}  // namespace artune

int main(int argc, char** argv) {
  if (argc > 3 && std::string_view(argv[1]) == "worker") {
    return artune::serve_worker({artune::make_test_machine, artune::probe_options}, std::atoi(argv[3]));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
