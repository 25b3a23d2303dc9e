// A keyboard of an X server: its XTEST extension presses keys, and they go the way that a person's go, through the
// server's map of keys to the window that has the focus.
#pragma once

#include <sys/uio.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace sibyl::gui::test {

class Keyboard {
 public:
  Keyboard() : server_(xcb_connect(nullptr, nullptr)) {}
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;
  ~Keyboard() { xcb_disconnect(server_); }

  // The key that gives this symbol with Shift, which is held down meanwhile. False: no key can be pressed, or none does.
  bool pressWithShift(xcb_keysym_t symbol) {
    constexpr xcb_keysym_t left_shift = 0xffe1;
    if (xcb_connection_has_error(server_) != 0 || xcb_get_extension_data(server_, &extension_)->present == 0)
      return false;
    const xcb_keycode_t shift = keyOf(left_shift, 0), key = keyOf(symbol, 1);
    if (shift == 0 || key == 0) return false;
    send(XCB_KEY_PRESS, shift);
    send(XCB_KEY_PRESS, key);
    send(XCB_KEY_RELEASE, key);
    send(XCB_KEY_RELEASE, shift);
    return xcb_flush(server_) > 0;
  }

 private:
  // xXTestFakeInputReq of the protocol.
  struct FakeInput {
    std::uint8_t opcode = 0, minor = 0;
    std::uint16_t length = 0;
    std::uint8_t type = 0, detail = 0;
    std::uint16_t unused = 0;
    std::uint32_t time = 0, root = 0, unused_2[2] = {};
    std::int16_t x = 0, y = 0;
    std::uint8_t unused_3[7] = {}, device = 0;
  };
  static_assert(sizeof(FakeInput) == 36);

  // 0: none has it in this column of the map (0 as it is, 1 with Shift).
  [[nodiscard]] xcb_keycode_t keyOf(xcb_keysym_t symbol, int column) {
    const xcb_setup_t& setup = *xcb_get_setup(server_);
    const auto count = static_cast<std::uint8_t>(setup.max_keycode - setup.min_keycode + 1);
    const auto asked = xcb_get_keyboard_mapping(server_, setup.min_keycode, count);
    const std::unique_ptr<xcb_get_keyboard_mapping_reply_t, decltype(&std::free)> map(
        xcb_get_keyboard_mapping_reply(server_, asked, nullptr), &std::free);
    if (!map || map->keysyms_per_keycode <= column) return 0;
    const xcb_keysym_t* symbols = xcb_get_keyboard_mapping_keysyms(map.get());
    for (int key = 0; key < count; ++key)
      if (symbols[key * map->keysyms_per_keycode + column] == symbol)
        return static_cast<xcb_keycode_t>(setup.min_keycode + key);
    return 0;
  }

  void send(std::uint8_t type, xcb_keycode_t key) {
    constexpr std::uint8_t fake_input = 2;
    FakeInput request;
    request.type = type;
    request.detail = key;
    const xcb_protocol_request_t call{1, &extension_, fake_input, 1};
    std::array<iovec, 3> parts{};  // libxcb wants two of its own before the first
    parts[2] = {&request, sizeof request};
    xcb_send_request(server_, 0, &parts[2], &call);
  }

  xcb_connection_t* server_;
  xcb_extension_t extension_{"XTEST", 0};
};

}  // namespace sibyl::gui::test
