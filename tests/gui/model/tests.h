// The test objects of gui/model, one a file, which main.cpp runs one after the other.
#pragma once

#include <QObject>
#include <memory>

std::unique_ptr<QObject> scenarioTest();
std::unique_ptr<QObject> documentTest();
std::unique_ptr<QObject> sessionTest();
std::unique_ptr<QObject> answersTest();
std::unique_ptr<QObject> listsTest();
