// The opcodes: CPython Lib/pickletools.py. What torch.save writes: pytorch torch/_tensor.py
// (_reduce_ex_internal), torch/_utils.py (_rebuild_*), torch/serialization.py (persistent_id).
#include "orrery/weights/pickle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "orrery/weights/pickle_globals.h"
#include "orrery/weights/refuse.h"

namespace orrery::weights {

using namespace pickle;

namespace {

// A tensor takes about 30 steps: room for 30,000 tensors. A step allocates at most about 300 bytes (a tensor
// of 8 dimensions).
constexpr int64_t kMostSteps = 1'000'000;
constexpr size_t kMostDimensions = 8;
constexpr int kNewestProtocol = 5;
constexpr unsigned char kStop = '.';

}  // namespace

class PickleMachine {
 public:
  PickleMachine(Pickle& out, std::string_view stream, const std::string& path)
      : out_(out), rest_(stream), path_(path) {}

  void run() {
    for (int64_t step = 0; step < kMostSteps; ++step) {
      const auto code = number<unsigned char>();
      if (code == kStop) return finish();
      const Opcode* opcode = find_opcode(code);
      if (!opcode) corrupt("byte ", static_cast<int>(code), " is no pickle opcode");
      if (!opcode->act)
        refuse(Fault::kUnsafePickle, path_, ": the pickle uses opcode ", opcode->name,
               ", which no state dict needs");
      opcode->act(*this);
    }
    refuse(Fault::kUnsupported, path_, ": the pickle has more than ", kMostSteps, " opcodes");
  }

 private:
  struct Opcode {
    unsigned char code;
    const char* name;
    void (*act)(PickleMachine&);  // null: known, but outside the allow-list
  };
  static const Opcode kOpcodes[];
  static const Opcode* find_opcode(unsigned char code);

  template <class... Args>
  [[noreturn]] void corrupt(const Args&... args) const {
    refuse(Fault::kCorruptPickle, path_, ": ", args...);
  }

  // Reading.

  std::string_view bytes(uint64_t size) {
    if (size > rest_.size())
      corrupt("the pickle ends early: expected ", size, " bytes, found ", rest_.size());
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view line() {
    const size_t end = rest_.find('\n');
    if (end == rest_.npos) corrupt("the pickle ends in the middle of a name");
    const auto taken = bytes(end);
    bytes(1);
    return taken;
  }

  int64_t long_number() {
    const auto digits = bytes(number<uint8_t>());  // little-endian two's complement
    if (digits.empty()) return 0;
    if (digits.size() > sizeof(int64_t)) corrupt("an integer of ", digits.size(), " bytes");
    int64_t value = static_cast<signed char>(digits.back()) < 0 ? -1 : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return value;
  }

  // The stack. Values below the newest mark are out of reach until it is taken.

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(Value value) { stack_.push_back(value); }

  Value& top() {
    if (stack_.size() <= floor()) corrupt("the pickle takes from an empty stack");
    return stack_.back();
  }

  Value pop() {
    const Value value = top();
    stack_.pop_back();
    return value;
  }

  std::vector<Value> pop_mark() {
    if (marks_.empty()) corrupt("the pickle takes a mark that it never set");
    std::vector<Value> values(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return values;
  }

  std::vector<Value> pop_last(size_t count) {
    std::vector<Value> values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }

  template <class T>
  T pop_as(std::string_view expected) {
    const Value value = pop();
    return as<T>(value, expected);
  }

  template <class T>
  T as(const Value& value, std::string_view expected) const {
    if (const T* found = std::get_if<T>(&value)) return *found;
    corrupt("expected ", expected, ", found something else");
  }

  // Actions of opcodes.

  void check_protocol(int protocol) const {
    if (protocol > kNewestProtocol) refuse(Fault::kUnsupported, path_, ": pickle protocol ", protocol);
  }

  void check_frame(uint64_t size) const {
    if (size > rest_.size()) corrupt("a frame of ", size, " bytes, ", rest_.size(), " are left");
  }

  void skip(uint64_t size) { bytes(size), push(Inert{}); }
  void push_dict() { push(&out_.dicts_.emplace_back()); }
  void store(uint64_t index) { memo_[index] = top(); }

  void push_list(std::vector<Value> items, bool tuple) {
    push(&out_.lists_.emplace_back(List{std::move(items), tuple}));
  }

  void append(const std::vector<Value>& values) {
    List& list = *as<List*>(top(), "a list to append to");
    if (list.tuple) corrupt("expected a list to append to, found a tuple");
    list.items.insert(list.items.end(), values.begin(), values.end());
  }

  void set_items(const std::vector<Value>& values) {
    Dict& dict = *as<Dict*>(top(), "a dictionary to set items of");
    if (values.size() % 2 != 0) corrupt("a dictionary's key without a value");
    for (size_t i = 0; i < values.size(); i += 2) dict.items.emplace_back(values[i], values[i + 1]);
  }

  void recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) corrupt("the pickle recalls memo ", index, ", which it never stored");
    push(found->second);
  }

  void finish() {
    if (!marks_.empty() || stack_.size() != 1)
      corrupt("expected one value at the end, found ", stack_.size(), " and ", marks_.size(), " marks");
    out_.root_ = stack_.back();
  }

  // Globals and calls.

  void push_global() {
    const auto module = line();
    push(find_global(module, line(), path_));
  }

  void push_stack_global() {
    const auto name = pop_as<std::string_view>("a global's name");
    push(find_global(pop_as<std::string_view>("a global's module"), name, path_));
  }

  const List& pop_tuple(std::string_view expected) {
    const List& list = *pop_as<List*>(expected);
    if (!list.tuple) corrupt("expected ", expected, ", found a list");
    return list;
  }

  void call() {
    const List& arguments = pop_tuple("a tuple of arguments");
    const Value callee = pop();
    if (!std::holds_alternative<Callable>(callee))
      refuse(Fault::kUnsafePickle, path_, ": the pickle calls something that is no function of a state dict");
    switch (std::get<Callable>(callee)) {
      case Callable::kOrderedDict:
        return ordered_dict(arguments);
      case Callable::kRebuildTensorV2:
        return push_tensor(arguments, false);
      case Callable::kRebuildTensorV3:
        return push_tensor(arguments, true);
      case Callable::kRebuildParameter:
        return push(argument(arguments, 0));
      case Callable::kSize:
        return push(argument(arguments, 0));
      case Callable::kEncode:
      case Callable::kBytesIO:
        return push(Inert{});
    }
  }

  /// NEWOBJ, in the one form that occurs: the BytesIO of an _extra_state.
  void construct() {
    pop_tuple("a tuple of arguments");
    const Value type = pop();
    const auto* callable = std::get_if<Callable>(&type);
    if (!callable || *callable != Callable::kBytesIO)
      refuse(Fault::kUnsafePickle, path_,
             ": the pickle constructs an object that no state dict needs (NEWOBJ)");
    push(Inert{});
  }

  /// BUILD hands an object its state: an OrderedDict's _metadata, a BytesIO's contents; no weight.
  void build() {
    pop();
    if (!std::holds_alternative<Dict*>(top()) && !std::holds_alternative<Inert>(top()))
      refuse(Fault::kUnsafePickle, path_, ": the pickle sets the state of something that is no dictionary");
  }

  const Value& argument(const List& arguments, size_t index) const {
    if (index >= arguments.items.size())
      corrupt("a call with ", arguments.items.size(), " arguments, expected at least ", index + 1);
    return arguments.items[index];
  }

  void ordered_dict(const List& arguments) {
    if (!arguments.items.empty()) corrupt("expected an OrderedDict without arguments");
    push_dict();
  }

  /// ('storage', type, key, device, count): torch/serialization.py, persistent_id.
  void push_storage() {
    const List& id = pop_tuple("a storage's persistent id");
    if (as<std::string_view>(argument(id, 0), "'storage'") != "storage")
      corrupt("a persistent id of something else than a storage");
    const auto type = as<StorageType>(argument(id, 1), "a storage type");
    const auto key = as<std::string_view>(argument(id, 2), "a storage's key");
    const auto count = as<int64_t>(argument(id, 4), "a storage's size");
    if (count < 0 || count > std::numeric_limits<int64_t>::max() / 16)
      refuse(Fault::kInvalidTensor, path_, ": storage ", shown(key), " of ", count, " elements");
    push(&out_.storages_.emplace_back(StoredBytes{key, type.dtype, count}));
  }

  Shape shape(const Value& value) const {
    const List& list = *as<List*>(value, "sizes or strides");
    if (list.items.size() > kMostDimensions)
      refuse(Fault::kInvalidTensor, path_, ": tensor ", key_on_stack(), ": expected at most ",
             kMostDimensions, " dimensions, found ", list.items.size());
    Shape sizes;
    for (const auto& item : list.items) sizes.push_back(as<int64_t>(item, "an integer size or stride"));
    return sizes;
  }

  /// (storage, offset, sizes, strides, requires_grad, hooks[, metadata]); version 3 has a dtype at index 6.
  void push_tensor(const List& arguments, bool has_dtype) {
    const auto* storage = as<const StoredBytes*>(argument(arguments, 0), "a tensor's storage");
    StoredTensor tensor{*storage, storage->dtype, as<int64_t>(argument(arguments, 1), "a tensor's offset"),
                        shape(argument(arguments, 2)), shape(argument(arguments, 3))};
    if (has_dtype) tensor.dtype = as<Dtype>(argument(arguments, 6), "a tensor's dtype").dtype;
    check_extent(tensor);
    push(&out_.tensors_.emplace_back(std::move(tensor)));
  }

  /// The name of the tensor at hand, as far as that can be told: a dictionary's key is pushed before its
  /// value.
  std::string key_on_stack() const {
    const auto* name = stack_.empty() ? nullptr : std::get_if<std::string_view>(&stack_.back());
    return name ? shown(*name) : "(unnamed)";
  }

  void check_extent(const StoredTensor& t) const {
    const auto invalid = [&](std::string_view why) {
      refuse(Fault::kInvalidTensor, path_, ": tensor ", key_on_stack(), " of sizes ",
             at::IntArrayRef(t.sizes), ", strides ", at::IntArrayRef(t.strides), ", offset ", t.offset,
             " in a storage of ", t.storage.count, " elements: ", why);
    };
    if (t.sizes.size() != t.strides.size()) invalid("as many strides as sizes are needed");
    const int64_t held = t.storage.count * static_cast<int64_t>(c10::elementSize(t.storage.dtype)) /
                         static_cast<int64_t>(c10::elementSize(t.dtype));
    if (t.offset < 0 || t.offset > held) invalid("the offset lies outside");
    const auto negative = [](int64_t n) { return n < 0; };
    if (std::ranges::any_of(t.sizes, negative) || std::ranges::any_of(t.strides, negative))
      invalid("negative numbers");
    int64_t count = 1, last = t.offset;
    for (int64_t size : t.sizes)
      if (__builtin_mul_overflow(count, size, &count)) invalid("the number of elements overflows");
    if (count == 0) return;
    for (size_t i = 0; i < t.sizes.size(); ++i) {
      int64_t reach = 0;
      if (__builtin_mul_overflow(t.sizes[i] - 1, t.strides[i], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        invalid("the strides overflow");
    }
    if (last >= held) invalid("the last element lies outside");
    // An expanded view could describe terabytes in a small file; no checkpoint has one.
    if (count > held) invalid("more elements than the storage has");
  }

  Pickle& out_;
  std::string_view rest_;
  const std::string& path_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value> memo_;
};

const PickleMachine::Opcode PickleMachine::kOpcodes[] = {
    {'N', "NONE", [](PickleMachine& m) { m.push(Inert{}); }},
    {0x88, "NEWTRUE", [](PickleMachine& m) { m.push(Inert{}); }},
    {0x89, "NEWFALSE", [](PickleMachine& m) { m.push(Inert{}); }},
    {'G', "BINFLOAT", [](PickleMachine& m) { m.skip(sizeof(double)); }},
    {'C', "SHORT_BINBYTES", [](PickleMachine& m) { m.skip(m.number<uint8_t>()); }},
    {'U', "SHORT_BINSTRING", [](PickleMachine& m) { m.skip(m.number<uint8_t>()); }},
    {'B', "BINBYTES", [](PickleMachine& m) { m.skip(m.number<uint32_t>()); }},
    {'T', "BINSTRING", [](PickleMachine& m) { m.skip(m.number<uint32_t>()); }},
    {0x8e, "BINBYTES8", [](PickleMachine& m) { m.skip(m.number<uint64_t>()); }},
    {0x96, "BYTEARRAY8", [](PickleMachine& m) { m.skip(m.number<uint64_t>()); }},
    {'J', "BININT", [](PickleMachine& m) { m.push(int64_t{m.number<int32_t>()}); }},
    {'K', "BININT1", [](PickleMachine& m) { m.push(int64_t{m.number<uint8_t>()}); }},
    {'M', "BININT2", [](PickleMachine& m) { m.push(int64_t{m.number<uint16_t>()}); }},
    {0x8a, "LONG1", [](PickleMachine& m) { m.push(m.long_number()); }},
    {0x8c, "SHORT_BINUNICODE", [](PickleMachine& m) { m.push(m.bytes(m.number<uint8_t>())); }},
    {'X', "BINUNICODE", [](PickleMachine& m) { m.push(m.bytes(m.number<uint32_t>())); }},
    {0x8d, "BINUNICODE8", [](PickleMachine& m) { m.push(m.bytes(m.number<uint64_t>())); }},
    {'(', "MARK", [](PickleMachine& m) { m.marks_.push_back(m.stack_.size()); }},
    {')', "EMPTY_TUPLE", [](PickleMachine& m) { m.push_list({}, true); }},
    {'t', "TUPLE", [](PickleMachine& m) { m.push_list(m.pop_mark(), true); }},
    {0x85, "TUPLE1", [](PickleMachine& m) { m.push_list(m.pop_last(1), true); }},
    {0x86, "TUPLE2", [](PickleMachine& m) { m.push_list(m.pop_last(2), true); }},
    {0x87, "TUPLE3", [](PickleMachine& m) { m.push_list(m.pop_last(3), true); }},
    {']', "EMPTY_LIST", [](PickleMachine& m) { m.push_list({}, false); }},
    {'a', "APPEND", [](PickleMachine& m) { m.append(m.pop_last(1)); }},
    {'e', "APPENDS", [](PickleMachine& m) { m.append(m.pop_mark()); }},
    {'}', "EMPTY_DICT", [](PickleMachine& m) { m.push_dict(); }},
    {'s', "SETITEM", [](PickleMachine& m) { m.set_items(m.pop_last(2)); }},
    {'u', "SETITEMS", [](PickleMachine& m) { m.set_items(m.pop_mark()); }},
    {'q', "BINPUT", [](PickleMachine& m) { m.store(m.number<uint8_t>()); }},
    {'r', "LONG_BINPUT", [](PickleMachine& m) { m.store(m.number<uint32_t>()); }},
    {0x94, "MEMOIZE", [](PickleMachine& m) { m.store(m.memo_.size()); }},
    {'h', "BINGET", [](PickleMachine& m) { m.recall(m.number<uint8_t>()); }},
    {'j', "LONG_BINGET", [](PickleMachine& m) { m.recall(m.number<uint32_t>()); }},
    {0x80, "PROTO", [](PickleMachine& m) { m.check_protocol(m.number<uint8_t>()); }},
    {0x95, "FRAME", [](PickleMachine& m) { m.check_frame(m.number<uint64_t>()); }},
    {'c', "GLOBAL", [](PickleMachine& m) { m.push_global(); }},
    {0x93, "STACK_GLOBAL", [](PickleMachine& m) { m.push_stack_global(); }},
    {'R', "REDUCE", [](PickleMachine& m) { m.call(); }},
    {0x81, "NEWOBJ", [](PickleMachine& m) { m.construct(); }},
    {'b', "BUILD", [](PickleMachine& m) { m.build(); }},
    {'Q', "BINPERSID", [](PickleMachine& m) { m.push_storage(); }},
    // They construct objects, or belong to protocols and types that torch.save does not use.
    {'i', "INST", nullptr},
    {'o', "OBJ", nullptr},
    {0x92, "NEWOBJ_EX", nullptr},
    {0x82, "EXT1", nullptr},
    {0x83, "EXT2", nullptr},
    {0x84, "EXT4", nullptr},
    {'P', "PERSID", nullptr},
    {0x97, "NEXT_BUFFER", nullptr},
    {0x98, "READONLY_BUFFER", nullptr},
    {'I', "INT", nullptr},
    {'L', "LONG", nullptr},
    {0x8b, "LONG4", nullptr},
    {'F', "FLOAT", nullptr},
    {'S', "STRING", nullptr},
    {'V', "UNICODE", nullptr},
    {'g', "GET", nullptr},
    {'p', "PUT", nullptr},
    {'d', "DICT", nullptr},
    {'l', "LIST", nullptr},
    {'0', "POP", nullptr},
    {'1', "POP_MARK", nullptr},
    {'2', "DUP", nullptr},
    {0x8f, "EMPTY_SET", nullptr},
    {0x90, "ADDITEMS", nullptr},
    {0x91, "FROZENSET", nullptr},
};

const PickleMachine::Opcode* PickleMachine::find_opcode(unsigned char code) {
  const auto* found = std::ranges::find(kOpcodes, code, &Opcode::code);
  return found == std::end(kOpcodes) ? nullptr : found;
}

Pickle::Pickle(std::string_view stream, const std::string& path) { PickleMachine(*this, stream, path).run(); }

}  // namespace orrery::weights
