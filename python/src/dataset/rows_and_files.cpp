// Datasets of what lies in files or memory: rows(), files() and packed(). An argument is looked at once, here: a path,
// a source, an array of any library, or a list becomes what the library takes.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays/foreign.h"
#include "arrays/torch_memory.h"
#include "bindings.h"
#include "call/arguments.h"
#include "content/archive.h"
#include "content/contents.h"
#include "content/functions.h"
#include "core/format.h"
#include "data/dataset/rows.h"
#include "dataset/handles.h"
#include "file/raw.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/ops.h"
#include "penstock/pack.h"

namespace penstock::python {
namespace {

std::vector<std::string> strings_from(nb::handle items) {
  std::vector<std::string> out;
  for (const nb::handle item : nb::iter(items)) {
    if (PyUnicode_Check(item.ptr()) == 0) {
      throw Error(ErrorCode::kDTypeMismatch,
                  core::format("found an object of type {} at position {} of a list of strings", object_type(item),
                               out.size()));
    }
    out.push_back(name_from(item));
    yield_at(out.size());
  }
  return out;
}

Typed<Dataset> made(const char* function, const nb::object& arguments, Dataset dataset) {
  return made_by(function, arguments, nb::cast(std::move(dataset)));
}

/// One tensor of a list's items: numbers, nested lists of numbers, or arrays of one shape.
Tensor tensor_of_list(nb::handle items) {
  std::vector<Tensor> tensors;
  for (const nb::handle item : nb::iter(items)) {
    const std::optional<Tensor> tensor = has_dimensions(item) ? array_from(item) : std::nullopt;
    if (!tensor) return tensor_from(items, nb::none());
    tensors.push_back(*tensor);
    yield_at(tensors.size());
  }
  if (tensors.empty()) throw Error(ErrorCode::kInvalidArgument, "found an empty list, expected one sample or more");
  return stack(tensors);
}

/// What rows() takes in place of what it is given, and pickles: of a numpy.memmap the array in its file, where it is
/// nothing else, and of a list what is in it now. All others as they are.
nb::object as_kept(nb::handle source) {
  if (PyList_Check(source.ptr()) != 0 || PyTuple_Check(source.ptr()) != 0) {
    const bool has_texts = nb::len(source) > 0 && PyUnicode_Check(nb::object(source[0]).ptr()) != 0;
    return has_texts ? nb::object(nb::list(nb::borrow(source))) : nb::cast(tensor_of_list(source));
  }
  if (!comes_from(source, "numpy") || PyType_Check(source.ptr()) != 0) return nb::borrow(source);
  if (!nb::str(nb::object(source.type().attr("__name__"))).equal(nb::str("memmap"))) return nb::borrow(source);
  nb::object entry = nb::module_::import_("penstock._files.memmap").attr("entry_of")(source);
  return entry.is_none() ? nb::borrow(source) : entry;
}

/// True, False or None: not said.
std::optional<bool> choice_from(nb::handle choice) {
  if (choice.is_none()) return std::nullopt;
  if (!PyBool_Check(choice.ptr())) throw nb::type_error("mmap is True, False or None");
  return choice.is(Py_True);
}

/// All of a sequence that reads its items when they are asked for, such as a column of a Hugging Face dataset, as a
/// list or an array; nothing for what is no sequence.
nb::object whole_of(nb::handle source) {
  const nb::object sequence = nb::module_::import_("collections.abc").attr("Sequence");
  if (PyObject_IsInstance(source.ptr(), sequence.ptr()) != 1 || PyBytes_Check(source.ptr()) != 0) return {};
  const nb::object whole = source[nb::slice(nb::none(), nb::none(), nb::none())];
  const bool is_plain = PyList_Check(whole.ptr()) != 0 || PyTuple_Check(whole.ptr()) != 0 || has_dimensions(whole);
  return is_plain ? whole : nb::object(nb::list(whole));
}

Dataset rows_of(nb::handle source, nb::handle key, std::optional<bool> mmap) {
  const std::string name = key.is_none() ? "" : name_from(key);
  if (is_path(source)) {
    return interruptible(true,
                         [path = path_from(source), name, mmap](std::stop_token) { return rows(path, name, mmap); });
  }
  if (nb::isinstance<PySource>(source)) {
    return interruptible(true, [of = nb::cast<PySource>(source).source, name, mmap](std::stop_token) {
      return data::rows_in(open(of), name, mmap);
    });
  }
  if (!name.empty()) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found key={} beside an array, expected it beside "
                                                          "a path; leave it out",
                                                          shown(key)));
  }
  if (nb::isinstance<PyLazyTensor>(source)) {
    return interruptible(
        true, [entry = nb::cast<PyLazyTensor>(source).tensor, mmap](std::stop_token) { return rows(entry, mmap); });
  }
  if (mmap) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found mmap={} beside values in memory, expected it beside a file; leave it out",
                             *mmap ? "True" : "False"));
  }
  if (const std::optional<Tensor> tensor = array_from(source)) {
    forbid_resizing(source);
    if (tensor->requires_grad() && !nb::isinstance<Tensor>(source)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "found a tensor that requires gradients, and rows that Penstock copies do not lead back to it; give "
                  "its detach(), or a torch.utils.data.TensorDataset of it, which keeps them");
    }
    return rows(*tensor);
  }
  if (PyList_Check(source.ptr()) != 0) return strings(strings_from(source));
  if (const nb::object whole = whole_of(source); whole.is_valid()) return rows_of(as_kept(whole), key, mmap);
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("rows() takes a path, a Source, a Tensor, a LazyTensor, an array of any "
                           "library, or a list of numbers, of strings or of arrays; found an object of type {}",
                           object_type(source)));
}

/// The samples of a file without a header, whose array the arguments say.
Typed<Dataset> headerless_rows(nb::handle source, nb::handle key, nb::handle mmap, const RawArguments& layout,
                               nb::handle strict) {
  if (!key.is_none() || flag_argument(strict, "strict")) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found {} beside shape=, offset= or order=: a file without a header has one array, and "
                             "dtype= is what its elements are; cast() changes their type",
                             key.is_none() ? "strict=True" : "key="));
  }
  if (!is_path(source) && !nb::isinstance<PySource>(source)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found shape=, offset= or order= beside an object of type {}, expected them beside a path",
                             object_type(source)));
  }
  const nb::object given = is_path(source) ? path_text(path_from(source)) : nb::borrow(source);
  const nb::object array = nb::cast(open_raw(given, layout, false));
  return made("rows", nb::make_tuple(array, nb::none(), mmap), rows_of(array, nb::none(), choice_from(mmap)));
}

FilesOptions files_options(nb::handle keys, nb::handle index, nb::handle exclude, nb::handle raw,
                           nb::handle class_folders) {
  FilesOptions out;
  out.keys = keys_from(keys, true);
  if (!exclude.is_none()) out.exclude = paths_from(exclude);
  out.raw = flag_argument(raw, "raw");
  out.class_folders = flag_argument(class_folders, "class_folders");
  out.index_path = index_path_from(index);
  out.index = !nb::handle(Py_False).is(index);
  return out;
}

Dataset files_of(nb::handle pattern, const FilesOptions& options) {
  if (is_path(pattern)) {
    return interruptible(true, [text = path_from(pattern), options](std::stop_token) { return files(text, options); });
  }
  return interruptible(true, [paths = paths_from(pattern), options](std::stop_token) { return files(paths, options); });
}

Typed<Dataset> files_opened_by(nb::handle source, const nb::tuple& arguments, FilesOptions options) {
  const HeldFunction function(source, "source=");
  options.source = [f = function.lent()](const std::string& path) { return f.opened(path); };
  nb::object out =
      with_recipe("sourced_files", nb::make_tuple(arguments, source), nb::cast(files_of(arguments[0], options)));
  nb::setattr(out, "_function", function.keeper());
  return out;
}

}  // namespace

void bind_rows_and_files(nb::module_& module) {
  module.def(
      "rows",
      [](nb::handle given, nb::handle key, nb::handle mmap, nb::handle dtype, nb::handle strict, nb::handle shape,
         nb::handle offset, nb::handle order) {
        const RawArguments layout = {dtype, shape, offset, order};
        if (layout.say_headerless()) return headerless_rows(given, key, mmap, layout, strict);
        const nb::object source = as_kept(given);
        return typed(made("rows", nb::make_tuple(source, key, mmap), rows_of(source, key, choice_from(mmap))), dtype,
                     strict);
      },
      nb::arg("source").none(), nb::arg("key").none(), nb::arg("mmap").none(), nb::arg("dtype").none(),
      nb::arg("strict"), nb::arg("shape").none(), nb::arg("offset").none(), nb::arg("order").none());
  module.def(
      "files",
      [](nb::handle pattern, nb::handle keys, nb::handle index, nb::handle exclude, nb::handle raw,
         nb::handle class_folders, nb::handle dtype, nb::handle strict, nb::handle source) {
        const nb::object paths = kept_list(pattern, is_path(pattern));
        const nb::object names = kept_list(keys, keys.is_none() || is_key(keys));
        const nb::object left_out = kept_list(exclude, exclude.is_none() || is_path(exclude));
        const nb::tuple arguments = nb::make_tuple(paths, names, index, left_out, raw, class_folders);
        FilesOptions options = files_options(names, index, left_out, raw, class_folders);
        if (!source.is_none()) {
          return typed(files_opened_by(source, arguments, std::move(options)), dtype, strict, names);
        }
        return typed(made("files", arguments, files_of(paths, options)), dtype, strict, names);
      },
      nb::arg("pattern").none(), nb::arg("keys").none(), nb::arg("index"), nb::arg("exclude").none(), nb::arg("raw"),
      nb::arg("class_folders"), nb::arg("dtype").none(), nb::arg("strict"), nb::arg("source").none());
  module.def(
      "packed",
      [](nb::handle pattern, nb::handle mmap) {
        const std::string text = path_from(pattern);
        return made(
            "packed", nb::make_tuple(pattern, mmap),
            interruptible(true, [text, mmap = choice_from(mmap)](std::stop_token) { return packed(text, mmap); }));
      },
      nb::arg("pattern").none(), nb::arg("mmap").none());
}

}  // namespace penstock::python
