// What is linked in place of libpthread.so.0 and libdl.so.2 of a glibc before 2.34 (CMakeLists.txt makes one of each).
// It is never loaded: the module then names these two libraries, and the versions of functions that they have always
// had. An old glibc has the functions there. A new one has the libraries, empty, and the same versions in libc.

#define PENSTOCK_HAS(name) \
  extern "C" void name() {}

#ifdef PENSTOCK_LIBPTHREAD
PENSTOCK_HAS(pthread_create)
PENSTOCK_HAS(pthread_detach)
PENSTOCK_HAS(pthread_getspecific)
PENSTOCK_HAS(pthread_join)
PENSTOCK_HAS(pthread_key_create)
PENSTOCK_HAS(pthread_key_delete)
PENSTOCK_HAS(pthread_mutex_trylock)
PENSTOCK_HAS(pthread_once)
PENSTOCK_HAS(pthread_rwlock_rdlock)
PENSTOCK_HAS(pthread_rwlock_unlock)
PENSTOCK_HAS(pthread_rwlock_wrlock)
PENSTOCK_HAS(pthread_setname_np)
PENSTOCK_HAS(pthread_setspecific)
PENSTOCK_HAS(pthread_sigmask)
#else
PENSTOCK_HAS(dladdr)
PENSTOCK_HAS(dlerror)
PENSTOCK_HAS(dlopen)
PENSTOCK_HAS(dlsym)
#endif
