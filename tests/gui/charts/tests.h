// The test objects of gui/view/charts, one a file, which main.cpp runs one after the other.
#pragma once

#include <QObject>
#include <memory>

std::unique_ptr<QObject> breakdownTest();
std::unique_ptr<QObject> memoryTest();
std::unique_ptr<QObject> scalingTest();
std::unique_ptr<QObject> searchTest();
std::unique_ptr<QObject> chartViewsTest();
