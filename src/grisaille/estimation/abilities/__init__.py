"""What estimators may have beside an estimate: a contract for each ability, and the sentence where one is missing."""
