package Heating "A heated room, written for tests"
end Heating;
