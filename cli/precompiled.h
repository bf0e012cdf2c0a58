/* The headers that the Makefile compiles once for all files, because most of the compiler's time
 * went into reading them in each file. Each file still includes its own, and compiles without this
 * one. */

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <libpq-fe.h>
