#include <nanobind/stl/string.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "penstock/error.h"
#include "penstock/transfer.h"
#include "tensor/transfer_warnings.h"

namespace penstock::python {
namespace {

thread_local std::vector<std::string>* collecting = nullptr;

/// Warnings arrive in the thread that copies. Where that is one of Python's, its frame is the caller's line.
void hand_on(const TransferWarning& warning) {
  if (collecting != nullptr) {
    collecting->push_back(warning.message);
  } else if (interpreter_is_usable() && PyGILState_GetThisThreadState() != nullptr) {
    const AcquiredGil gil;
    issue_transfer_warnings({warning.message});
  } else {
    std::fprintf(stderr, "penstock: warning: %s\n", warning.message.c_str());
  }
}

nb::dict counts_of(const TransferCounts& counts) {
  nb::dict out;
  out["copies"] = counts.copies;
  out["bytes"] = counts.bytes;
  out["submit_seconds"] = counts.submit_seconds;
  out["waits"] = counts.waits;
  out["wait_seconds"] = counts.wait_seconds;
  return out;
}

nb::dict stats_of(const TransferStats& stats) {
  nb::dict out;
  out["host_to_device"] = counts_of(stats.host_to_device);
  out["device_to_host"] = counts_of(stats.device_to_host);
  out["device_to_device"] = counts_of(stats.device_to_device);
  out["peer_to_peer"] = counts_of(stats.peer_to_peer);
  return out;
}

/// A scope that ends with its `with` block, though the object lives on.
class Transfers {
 public:
  explicit Transfers(TransferScope::Threads threads) : threads_(threads), scope_(threads) {}

  void begin() {
    scope_ = TransferScope(threads_);
    ended_.reset();
  }
  void end() { ended_ = scope_.stats(); }
  nb::dict stats() const { return stats_of(ended_ ? *ended_ : scope_.stats()); }

 private:
  TransferScope::Threads threads_;
  TransferScope scope_;
  std::optional<TransferStats> ended_;
};

Transfers make_transfers(const std::string& threads) {
  if (threads == "all") return Transfers(TransferScope::Threads::kAll);
  if (threads == "current") return Transfers(TransferScope::Threads::kCurrent);
  throw Error(ErrorCode::kInvalidArgument, "found threads='" + threads + "', expected 'all' or 'current'");
}

void bind_scope(nb::module_& module) {
  nb::class_<Transfers>(module, "Transfers", nb::sig("class Transfers(TransfersMethods)"), "Transfers()\n--\n\n")
      .def("_stats", &Transfers::stats, nb::lock_self())
      .def(
          "__enter__",
          [](Transfers& self) -> Transfers& {
            self.begin();
            return self;
          },
          nb::lock_self(), nb::rv_policy::reference)
      .def(
          "__exit__", [](Transfers& self, const nb::args&) { self.end(); }, nb::lock_self());
  module.def("transfers", make_transfers, nb::arg("threads"));
}

}  // namespace

CollectedWarnings::CollectedWarnings() { collecting = &messages_; }
CollectedWarnings::~CollectedWarnings() { collecting = nullptr; }
std::vector<std::string> CollectedWarnings::take() { return std::exchange(messages_, {}); }

void issue_transfer_warnings(const std::vector<std::string>& messages) {
  if (messages.empty()) return;
  const nb::object category = nb::module_::import_("penstock.errors").attr("TransferWarning");
  for (const std::string& message : messages) warn(category, message);
}

void bind_transfers(nb::module_& module) {
  set_transfer_warning_handler(hand_on);
  module.def("transfer_stats", [] { return stats_of(transfer_stats()); });
  bind_scope(module);
}

}  // namespace penstock::python
