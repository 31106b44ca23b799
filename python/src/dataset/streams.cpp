// Streams of the program's samples. The class that programs see is penstock._batches.streams.SampleStream; this is the
// handle it holds. The iterators of a source live in Python, in its opener (penstock._batches.streams.Opener), which
// the garbage collector sees through the keepers of its methods. C++ knows each iterator by a number.

#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <utility>

#include "bindings.h"
#include "call/arguments.h"
#include "call/turns.h"
#include "content/functions.h"
#include "content/value.h"
#include "core/format.h"
#include "core/stop_scope.h"
#include "data/stream/node.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "interpreter/typed.h"
#include "penstock/error.h"
#include "penstock/sample_stream.h"

namespace penstock::python {
namespace {

/// The methods of an opener.
struct OpenerMethods {
  HeldFunction open;
  HeldFunction next;
  HeldFunction close;
};

/// One iterator of an opener's; goes with the last reader of it.
class OpenIterator {
 public:
  OpenIterator(OpenerMethods opener, std::int64_t start) : opener_(std::move(opener)) {
    number_ = opener_.open(start).as_int();
  }
  ~OpenIterator() {
    try {
      static_cast<void>(opener_.close(number_));
    } catch (...) {
      // The opener is gone, or Python: so is the iterator.
    }
  }
  OpenIterator(const OpenIterator&) = delete;
  OpenIterator& operator=(const OpenIterator&) = delete;

  std::optional<Value> next() const {
    const Value given = opener_.next(number_);
    if (given.size() == 0) return std::nullopt;
    return given[0];
  }

 private:
  OpenerMethods opener_;
  std::int64_t number_ = 0;
};

detail::Begins begins_from(const std::string& text) {
  if (text == "once") return detail::Begins::kOnce;
  return text == "anew" ? detail::Begins::kAnew : detail::Begins::kAnywhere;
}

Typed<SampleStream> stream_of_opener(nb::handle opener, const std::string& name, const std::string& begins) {
  const HeldFunction open(opener.attr("open"), "stream()");
  const HeldFunction next(opener.attr("next"), "stream()");
  const HeldFunction close(opener.attr("close"), "stream()");
  const auto opened = [methods = OpenerMethods{open.lent(), next.lent(), close.lent()}](std::int64_t start) {
    return [iterator = std::make_shared<OpenIterator>(methods, start)] { return iterator->next(); };
  };
  nb::object out = nb::cast(detail::stream_of(opened, begins_from(begins), {.name = name}));
  nb::setattr(out, "_functions", nb::make_tuple(open.keeper(), next.keeper(), close.keeper()));
  return out;
}

Typed<SampleStream> filtered(const SampleStream& self, nb::handle keep) {
  const HeldFunction function(keep, "filter()");
  nb::object out =
      nb::cast(SampleStream(data::filtered_node(self, SampleFunction{.function = function.lent(), .tells = true})));
  nb::setattr(out, "_function", function.keeper());
  return out;
}

SampleStream repeated(const SampleStream& self, nb::handle times) {
  if (times.is_none()) return self.repeat();
  return self.repeat(integer_argument(times, "times"));
}

SampleStream shuffled(const SampleStream& self, nb::handle window, nb::handle seed, nb::handle memory) {
  WindowOptions options;
  if (!memory.is_none()) options.memory = count_argument(memory, "memory");
  return self.shuffle(integer_argument(window, "window"), count_argument(seed, "seed"), options);
}

/// A walk as Python has it: one thread at a time, without the GIL where no function of Python runs.
class PyWalk {
 public:
  PyWalk(const SampleStream& stream, std::uint64_t seed, std::uint64_t epoch, std::int64_t part, std::int64_t parts,
         bool keeps_order)
      : walk_(stream, {.seed = seed, .epoch = epoch}, part, parts, keeps_order) {}

  Anything next() {
    std::optional<Value> sample;
    for (bool is_there = false; !is_there;) {
      try {
        sample = take();
        is_there = true;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCancelled || !signals_arrive_here() || !ctrl_c_came()) throw;
        check_signals();  // what it raises leaves the sample for the next call
      }
    }
    if (!sample) throw nb::stop_iteration();
    try {
      check_signals();
    } catch (...) {
      const ReleasedGil released;
      const std::scoped_lock lock(turns_.mutex);
      kept_ = std::move(sample);
      throw;
    }
    return to_python(*sample);
  }

 private:
  std::optional<Value> take() {
    const ReleasedGil released;
    const std::scoped_lock lock(turns_.mutex);
    const Making making(turns_, "iterator");
    const core::StopScope scope(signals_arrive_here() ? ctrl_c_came : nullptr);
    return kept_ ? std::exchange(kept_, std::nullopt) : walk_.next();
  }

  Turns turns_;
  data::StreamWalk walk_;
  std::optional<Value> kept_;  ///< was there when a signal handler raised
};

}  // namespace

nb::object mixed_streams(const nb::list& streams, const std::vector<double>& weights, const MixOptions& options) {
  std::vector<SampleStream> parts;
  for (const nb::handle part : streams) {
    if (!is_stream(part)) {
      throw Error(
          ErrorCode::kDTypeMismatch,
          core::format("found an object of type {} beside streams in one mixture; stream(dataset) makes a stream "
                       "of a dataset",
                       object_type(part)));
    }
    parts.push_back(nb::cast<SampleStream>(nb::object(part.attr("_native"))));
  }
  const char* const end = options.end == MixEnd::kAll ? "all" : "first";
  const nb::object size = options.size ? nb::cast(*options.size) : nb::none();
  return nb::module_::import_("penstock._batches.streams")
      .attr("mixed")(nb::cast(mix(parts, weights, options)), streams, list_of(weights), end, size);
}

void bind_streams(nb::module_& module) {
  nb::class_<SampleStream>(module, "_Stream", nb::dynamic_attr(), "What a SampleStream holds.")
      .def_prop_ro("samples", [](const SampleStream& self) { return self.samples(); })
      .def_prop_ro("can_begin_again", &SampleStream::can_begin_again)
      .def(
          "with_samples", [](const SampleStream& self, const Dataset& samples) { return self.with(samples); },
          nb::arg("samples"))
      .def(
          "take",
          [](const SampleStream& self, nb::handle count) { return self.take(integer_argument(count, "count")); },
          nb::arg("count").none())
      .def(
          "skip",
          [](const SampleStream& self, nb::handle count) { return self.skip(integer_argument(count, "count")); },
          nb::arg("count").none())
      .def("repeat", repeated, nb::arg("times").none())
      .def("shuffle", shuffled, nb::arg("window").none(), nb::arg("seed").none(), nb::arg("memory").none())
      .def("filter", filtered, nb::arg("keep").none());
  nb::class_<PyWalk>(module, "_StreamWalk", "One walk over a stream's samples.")
      .def(nb::init<const SampleStream&, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t, bool>(),
           nb::arg("stream"), nb::arg("seed") = 0, nb::arg("epoch") = 0, nb::arg("part") = 0, nb::arg("parts") = 1,
           nb::arg("keeps_order") = false)
      .def("__iter__", itself<PyWalk>)
      .def("__next__", &PyWalk::next);
  module.def("_stream", stream_of_opener, nb::arg("opener"), nb::arg("name"), nb::arg("begins"));
  module.def(
      "_stream_of_dataset", [](nb::handle dataset) { return stream(nb::cast<Dataset>(held_dataset(dataset))); },
      nb::arg("dataset"));
}

}  // namespace penstock::python
