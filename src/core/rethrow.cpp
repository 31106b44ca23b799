#include "core/rethrow.h"

#include <cxxabi.h>

#include <exception>
#include <new>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::core {

void rethrow_as_error(std::string_view who) {
  try {
    throw;
  } catch (const Error& error) {
    throw error.cause() ? error : error.caused_by(std::current_exception());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory, format("{} asked for more memory than there is", who))
        .caused_by(std::current_exception());
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUserCode, format("{} threw: {}", who, error.what())).caused_by(std::current_exception());
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended
  } catch (...) {
    throw Error(ErrorCode::kUserCode, format("{} threw something that is not a std::exception", who))
        .caused_by(std::current_exception());
  }
}

}  // namespace penstock::core
