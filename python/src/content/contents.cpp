#include "content/contents.h"

#include <memory>
#include <utility>

#include "archive/opening.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "penstock/error.h"

namespace penstock::python {

Buffer memory_of(nb::handle data) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(data.ptr(), view.get(), PyBUF_SIMPLE) != 0) nb::raise_python_error();
  auto* bytes = static_cast<std::byte*>(view->buf);
  const auto size = static_cast<std::size_t>(view->len);
  const std::shared_ptr<const void> owner(view.release(), [](const void* held) {
    auto* buffer = static_cast<Py_buffer*>(const_cast<void*>(held));
    if (interpreter_is_usable()) {
      const AcquiredGil gil;
      PyBuffer_Release(buffer);
    }
    delete buffer;
  });
  return Buffer::wrap(bytes, size, owner, true);
}

Source source_given(nb::handle given, const std::string& name) {
  const auto at = [](const std::string& path) {
    const ReleasedGil released;
    return archive::source_at(path);
  };
  if (nb::isinstance<PySource>(given)) return nb::cast<PySource>(given).source;
  if (PyBytes_Check(given.ptr()) == 0 && is_path(given)) return at(path_from(given));
  const nb::object content = nb::module_::import_("penstock._files.contents").attr("content")(given);
  const nb::object bytes = content[0];
  return bytes.is_none() ? at(path_from(content[1])) : memory_source(memory_of(bytes), name);
}

}  // namespace penstock::python
