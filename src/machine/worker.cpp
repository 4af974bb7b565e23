// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/worker.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "base/failure.hpp"
#include "machine/wire.hpp"

namespace artune {
namespace {

class Lines {
 public:
  explicit Lines(int socket) : socket_(socket) {}

  /// nullopt when the other side has closed.
  std::optional<std::string> next() {
    while (true) {
      if (const std::size_t newline = unread_.find('\n'); newline != std::string::npos) {
        std::string line = unread_.substr(0, newline);
        unread_.erase(0, newline + 1);
        return line;
      }
      std::array<char, 65536> block;
      const ssize_t got = ::recv(socket_, block.data(), block.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      unread_.append(block.data(), static_cast<std::size_t>(got));
    }
  }

  bool put(std::string_view line) {
    while (!line.empty()) {
      const ssize_t put = ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return false;
      line.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }

 private:
  int socket_;
  std::string unread_;
};

Error out_of_order(RequestKind kind) { return {Reason::internal, std::string(to_string(kind)) + " was asked of a worker without a machine"}; }

class Server {
 public:
  explicit Server(const WorkerDuties& duties) : duties_(duties) {}

  Result<Json> answer(RequestKind kind, const JsonReader& request) {
    if (kind == RequestKind::topology) return duties_.probe(options_from_json(request.at("options")));
    if (kind == RequestKind::start) return start(request);
    if (!machine_) return out_of_order(kind);
    switch (kind) {
      case RequestKind::describe: {
        Result<DocumentHeader> header = machine_->describe();
        if (!header) return header.error();
        return header_to_json(*header);
      }
      case RequestKind::verdicts:
        return wire::list_to_json(machine_->verdicts());
      case RequestKind::candidates:
        return wire::list_to_json(machine_->candidates(wire::shape_from_json(request.at("shape"))));
      case RequestKind::verify:
        return verify(wire::candidate_from_json(request.at("candidate")), wire::shape_from_json(request.at("shape")));
      case RequestKind::time:
        return time(wire::candidate_from_json(request.at("candidate")), wire::shape_from_json(request.at("shape")),
                    wire::time_request_from_json(request.at("time")));
      case RequestKind::time_overlap:
        return time_overlap(wire::candidate_from_json(request.at("candidate")), wire::shape_from_json(request.at("shape")),
                            wire::overlap_request_from_json(request.at("time")));
      case RequestKind::limit:
        return Json(machine_->limit_us(wire::shape_from_json(request.at("shape"))));
      case RequestKind::quit:
      case RequestKind::topology:
      case RequestKind::start:
        break;
    }
    return Json(nullptr);
  }

 private:
  Result<Json> start(const JsonReader& request) {
    Result<std::unique_ptr<Machine>> machine = duties_.make_machine(options_from_json(request.at("options")));
    if (!machine) return machine.error();
    machine_ = std::move(*machine);
    return Json(nullptr);
  }

  // A Failure here (a CUDA or NCCL call) is that candidate's result; the supervisor replaces this worker afterwards,
  // because such an error may be sticky.
  Result<Json> verify(const Candidate& candidate, const Shape& shape) {
    try {
      return wire::to_json(machine_->verify(candidate, shape));
    } catch (const Failure& failure) {
      Verification verification;
      verification.outcome = {OutcomeKind::error, failure.what()};
      return wire::to_json(verification);
    }
  }

  Result<Json> time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) {
    try {
      return wire::to_json(machine_->time(candidate, shape, request));
    } catch (const Failure& failure) {
      Timing timing;
      timing.outcome = {OutcomeKind::error, failure.what()};
      return wire::to_json(timing);
    }
  }

  Result<Json> time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) {
    try {
      return wire::to_json(machine_->time_overlap(candidate, shape, request));
    } catch (const Failure& failure) {
      OverlapTiming timing;
      timing.outcome = {OutcomeKind::error, failure.what()};
      return wire::to_json(timing);
    }
  }

  const WorkerDuties& duties_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace

int serve_worker(const WorkerDuties& duties, int socket) {
  Lines lines(socket);
  Server server(duties);
  while (const std::optional<std::string> line = lines.next()) {
    const Result<Json> parsed = parse_json(*line, "request");
    if (!parsed) return 1;
    Json reply = {{"id", parsed->value("id", 0)}};
    const auto refuse = [&](Reason reason, const std::string& message) { reply["error"] = wire::to_json(Error{reason, message}); };
    try {
      const JsonReader request(*parsed, "request");
      const auto kind = request.at("request").word<RequestKind>();
      if (kind == RequestKind::quit) return 0;
      Result<Json> value = server.answer(kind, request);
      if (value) {
        reply["value"] = std::move(*value);
      } else {
        refuse(value.error().reason, value.error().message);
      }
    } catch (const std::exception& error) {  // Failure, JsonError, bad_alloc: the supervisor decides what it means
      refuse(Reason::internal, error.what());
    }
    if (!lines.put(wire::to_line(reply))) return 0;
  }
  return 0;
}

}  // namespace artune
